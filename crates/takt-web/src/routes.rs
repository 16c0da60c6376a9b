//! Which request gets which answer.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http_body_util::{BodyExt, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName,
    HeaderValue, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Method, Request, Response, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use takt_core::Span;
use takt_daemon::control::ask::Ask;
use takt_daemon::tool::Unanswered;
use tokio::sync::{Semaphore, broadcast, mpsc};

use crate::access::{Origin, Right, Tokens, refusal};
use crate::api::{Me, OrderRequest, Problem, SimulateRequest, UndoRequest, VERSION, Why};
use crate::assets::ASSETS;
use crate::board::{self, Board, unix_ms};
use crate::changes::{self, Changes, NotDone};
use crate::content::Content;
use crate::timeline::Timeline;
use crate::what_if;

/// Longest body of a request: a scenario.
const BODY_BYTES_MAX: usize = 512 << 10;
/// How long a body may take.
const BODY_PATIENCE: Duration = Duration::from_secs(10);
/// Most streams of events at once.
const STREAMS_MAX: usize = 64;
/// Most questions to the daemon at once.
const ASKS_MAX: usize = 4;
/// Events that wait for one page.
const EVENTS_MAX: usize = 64;
/// What is older than this is not shown first.
const FRESH_MS: u64 = 3_000;
/// How often a silent stream says that it is there.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How often to look whether a page is there to which nothing happens.
const GLANCE: Duration = Duration::from_secs(2);
/// Most sentences about late frames in one answer.
const SENTENCES_MAX: usize = 100;
/// What the page may load: its own files, and nothing that another page could put there.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
                      require-trusted-types-for 'script'; trusted-types 'none'";

/// Everything that answers are made of.
#[derive(Debug)]
pub(crate) struct Site {
    tokens: Tokens,
    origins: Vec<Origin>,
    board: Board,
    timeline: Timeline,
    changes: Mutex<Changes>,
    streams: Arc<Semaphore>,
    asks: Semaphore,
    simulations: Semaphore,
}

impl Site {
    pub(crate) fn new(tokens: Tokens, origins: Vec<Origin>, board: Board, timeline: Timeline) -> Self {
        Self {
            tokens,
            origins,
            board,
            timeline,
            changes: Mutex::default(),
            streams: Arc::new(Semaphore::new(STREAMS_MAX)),
            asks: Semaphore::new(ASKS_MAX),
            simulations: Semaphore::new(1),
        }
    }

    pub(crate) fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    fn changes(&self) -> MutexGuard<'_, Changes> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type Answer = Response<Content>;

/// A request that is not answered with what it asked for.
struct Failure(StatusCode, String);

impl From<NotDone> for Failure {
    fn from(error: NotDone) -> Self {
        let status = match &error {
            NotDone::Bad(_) => StatusCode::UNPROCESSABLE_ENTITY,
            NotDone::Gone(_) => StatusCode::GONE,
            NotDone::Unanswered(unanswered) => status_of(unanswered),
        };
        Self(status, error.to_string())
    }
}

impl From<Unanswered> for Failure {
    fn from(error: Unanswered) -> Self {
        Self(status_of(&error), error.to_string())
    }
}

fn status_of(error: &Unanswered) -> StatusCode {
    match error {
        Unanswered::Refused(_) => StatusCode::CONFLICT,
        _ => StatusCode::BAD_GATEWAY,
    }
}

/// Answers a request.
pub(crate) async fn answer(site: &Arc<Site>, request: Request<Incoming>) -> Answer {
    let mut answer = match route(site, request).await {
        Ok(answer) => answer,
        Err(Failure(status, error)) => {
            let mut answer = json(&Problem { error });
            *answer.status_mut() = status;
            if status == StatusCode::METHOD_NOT_ALLOWED {
                answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, POST"));
            }
            answer
        }
    };
    let headers = answer.headers_mut();
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("permissions-policy"), "camera=(), microphone=(), geolocation=()"),
        // Another build may serve another page here.
        (CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    answer
}

async fn route(site: &Arc<Site>, request: Request<Incoming>) -> Result<Answer, Failure> {
    if let Some(refused) = refusal(request.headers(), &site.origins) {
        return Err(Failure(StatusCode::FORBIDDEN, refused.to_owned()));
    }
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    if method == Method::GET
        && let Some(asset) = ASSETS.iter().find(|asset| asset.path == path)
    {
        return Ok(whole(asset.kind, asset.text));
    }
    if method != Method::GET && method != Method::POST {
        return Err(Failure(StatusCode::METHOD_NOT_ALLOWED, "only GET and POST are served".to_owned()));
    }
    let Some(right) = site.tokens.right(request.headers()) else {
        let what =
            "a token is needed: open the link that takt web printed, or send the token in x-takt-token";
        return Err(Failure(StatusCode::UNAUTHORIZED, what.to_owned()));
    };
    match (&method, path.as_str()) {
        (&Method::GET, "/metrics") => metrics(site).await,
        (&Method::GET, "/api/v1/me") => me(site, right).await,
        (&Method::GET, "/api/v1/now") => {
            let now = blocking(site, |site| Ok::<_, Failure>(site.board.now())).await?;
            Ok(json(&now))
        }
        (&Method::GET, "/api/v1/events") => {
            events(site, parameter(&request, "timeline").as_deref() == Some("1"))
        }
        (&Method::GET, "/api/v1/history") => history(site, &request),
        (&Method::GET, "/api/v1/why") => why(site, &request).await,
        (&Method::GET, "/api/v1/changes") => Ok(json(&site.changes().answer())),
        (&Method::GET, "/api/v1/trace") => trace(site, &request).await,
        (&Method::GET, "/api/v1/schema") => Ok(whole("application/schema+json", crate::api::schema())),
        (&Method::POST, "/api/v1/preview") => {
            let OrderRequest { order, of } = body(request).await?;
            let order = changes::order(&order)?;
            let preview =
                blocking(site, move |site| changes::preview(&site.board.socket(), order, of.as_ref()));
            Ok(json(&preview.await?))
        }
        (&Method::POST, "/api/v1/simulate") => simulate(site, body(request).await?).await,
        (&Method::POST, "/api/v1/order" | "/api/v1/undo") if right < Right::Steer => {
            let what =
                "this token is for looking only; takt web printed another link for steering".to_owned();
            Err(Failure(StatusCode::FORBIDDEN, what))
        }
        (&Method::POST, "/api/v1/order") => give(site, body(request).await?).await,
        (&Method::POST, "/api/v1/undo") => undo(site, body(request).await?).await,
        _ => Err(Failure(
            StatusCode::NOT_FOUND,
            format!("{method} {path} is nothing that is served; see docs/web.md"),
        )),
    }
}

/// Does work that blocks on a thread for that.
async fn blocking<T: Send + 'static, E: Into<Failure> + Send + 'static>(
    site: &Arc<Site>,
    work: impl FnOnce(&Site) -> Result<T, E> + Send + 'static,
) -> Result<T, Failure> {
    let busy = |_| Failure(StatusCode::SERVICE_UNAVAILABLE, "the console ends".to_owned());
    let permit = site.asks.acquire().await.map_err(busy)?;
    let worker = Arc::clone(site);
    let done = tokio::task::spawn_blocking(move || work(&worker)).await;
    drop(permit);
    let failed =
        |_| Failure(StatusCode::INTERNAL_SERVER_ERROR, "the console failed; its log says why".to_owned());
    done.map_err(failed)?.map_err(Into::into)
}

async fn me(site: &Arc<Site>, right: Right) -> Result<Answer, Failure> {
    // Without a daemon, the rest is still known.
    let domains = blocking(site, |site| board::ask(&site.board.socket(), &Ask::Domains)).await.ok();
    let yours = domains.as_ref().and_then(|all| all["yours"].as_str());
    let listed = domains.as_ref().and_then(|all| all["domains"].as_array());
    let domain = listed.into_iter().flatten().find(|domain| domain["name"].as_str() == yours);
    let owned =
        |list: &[(&str, &str)]| list.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
    Ok(json(&Me {
        version: VERSION,
        build: env!("CARGO_PKG_VERSION").to_owned(),
        may_steer: right == Right::Steer,
        may_change_others: domain.map(|domain| domain["change"] == true),
        domain: yours.map(str::to_owned),
        uid: domains.as_ref().and_then(|all| all["uid"].as_u64()),
        policies: takt_policies::NAMES.iter().map(|name| (*name).to_owned()).collect(),
        scenarios: owned(what_if::EXAMPLES),
    }))
}

fn history(site: &Site, request: &Request<Incoming>) -> Result<Answer, Failure> {
    let span_s = number(request, "span_s", 900, 1..=86_400)?;
    Ok(json(&site.board.history().answer(unix_ms(), span_s)))
}

async fn why(site: &Arc<Site>, request: &Request<Incoming>) -> Result<Answer, Failure> {
    let Some(app) = parameter(request, "app") else {
        return Err(Failure(StatusCode::UNPROCESSABLE_ENTITY, "say which: ?app=NAME".to_owned()));
    };
    let ask = Ask::Why { app, frame: None };
    let known = blocking(site, move |site| board::ask(&site.board.socket(), &ask)).await?;
    let misses = known["misses"].as_array().map_or(&[][..], Vec::as_slice);
    let sentences =
        misses.iter().rev().take(SENTENCES_MAX).map(|miss| board::text(miss, "sentence")).collect();
    Ok(json(&Why { sentences, count: misses.len() }))
}

async fn trace(site: &Arc<Site>, request: &Request<Incoming>) -> Result<Answer, Failure> {
    let span = Span::from_ms(number(request, "seconds", 10, 1..=10)? * 1000);
    let made = blocking(site, move |site| {
        let none = |error: std::io::Error| Failure(StatusCode::CONFLICT, error.to_string());
        site.timeline.perfetto(span).map_err(none)
    });
    let mut answer = whole("application/octet-stream", made.await?);
    let name = HeaderValue::from_static("attachment; filename=\"takt.pftrace\"");
    answer.headers_mut().insert(CONTENT_DISPOSITION, name);
    Ok(answer)
}

async fn give(site: &Arc<Site>, request: OrderRequest) -> Result<Answer, Failure> {
    let order = changes::order(&request.order)?;
    let done =
        blocking(site, move |site| changes::give(&site.board.socket(), order, request.of.as_ref())).await?;
    site.board.history().mark(unix_ms(), &done.text);
    site.board.wake();
    Ok(json(&site.changes().add(done)))
}

async fn undo(site: &Arc<Site>, request: UndoRequest) -> Result<Answer, Failure> {
    let number = request.change;
    let undo = site.changes().undo_of(number)?;
    let done =
        blocking(site, move |site| changes::give(&site.board.socket(), undo.order, undo.of.as_ref())).await?;
    site.board.history().mark(unix_ms(), &format!("undone: {}", done.text));
    site.board.wake();
    let mut changes = site.changes();
    changes.undone(number);
    Ok(json(&changes.add(done)))
}

async fn simulate(site: &Arc<Site>, request: SimulateRequest) -> Result<Answer, Failure> {
    let Ok(_one) = site.simulations.try_acquire() else {
        let what = "another simulation runs; try again when it is over".to_owned();
        return Err(Failure(StatusCode::SERVICE_UNAVAILABLE, what));
    };
    let summary = blocking(site, move |_| {
        what_if::simulate(&request).map_err(|problem| Failure(StatusCode::UNPROCESSABLE_ENTITY, problem))
    });
    Ok(json(&summary.await?))
}

async fn metrics(site: &Arc<Site>) -> Result<Answer, Failure> {
    let page = blocking(site, |site| board::ask(&site.board.socket(), &Ask::Metrics)).await?;
    let text = page.as_str().unwrap_or_default().to_owned();
    Ok(whole("text/plain; version=0.0.4; charset=utf-8", text))
}

/// A stream of events.
fn events(site: &Arc<Site>, with_timeline: bool) -> Result<Answer, Failure> {
    let Ok(permit) = Arc::clone(&site.streams).try_acquire_owned() else {
        let what = format!("{STREAMS_MAX} pages are open already; close some");
        return Err(Failure(StatusCode::SERVICE_UNAVAILABLE, what));
    };
    let (send, receive) = mpsc::channel(EVENTS_MAX);
    tokio::spawn(show(Arc::clone(site), send.clone()));
    if with_timeline {
        tokio::spawn(show_timeline(Arc::clone(site), send));
    }
    let mut answer = Response::new(Content::pieces(receive, permit));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    Ok(answer)
}

/// Sends what is shown to one page until that is gone.
async fn show(site: Arc<Site>, page: mpsc::Sender<Bytes>) {
    let mut shown = site.board.watch();
    loop {
        let (at_ms, event) = shown.borrow_and_update().clone();
        // What is from before this page is old, unless another one is open.
        if unix_ms().saturating_sub(at_ms) < FRESH_MS && page.send(event).await.is_err() {
            return;
        }
        loop {
            match tokio::time::timeout(KEEP_ALIVE, shown.changed()).await {
                Ok(Ok(())) => break,
                Ok(Err(_)) => return,
                Err(_) if page.send(Bytes::from_static(b": still here\n\n")).await.is_err() => return,
                Err(_) => {}
            }
        }
    }
}

/// Sends what happens to one page until that is gone. One that does not keep up begins anew.
async fn show_timeline(site: Arc<Site>, page: mpsc::Sender<Bytes>) {
    let (mut next, mut batches) = site.timeline.watch();
    loop {
        if page.send(next).await.is_err() {
            return;
        }
        next = loop {
            match tokio::time::timeout(GLANCE, batches.recv()).await {
                Ok(Ok(batch)) => break batch,
                Ok(Err(broadcast::error::RecvError::Lagged(_))) => {
                    let (first, again) = site.timeline.watch();
                    batches = again;
                    break first;
                }
                Ok(Err(broadcast::error::RecvError::Closed)) => return,
                Err(_) if page.is_closed() => return,
                Err(_) => {}
            }
        };
    }
}

/// An event of a stream; JSON has no line breaks.
pub(crate) fn event(name: &str, json: &str) -> Bytes {
    Bytes::from(format!("event: {name}\ndata: {json}\n\n"))
}

/// Reads a body of JSON.
async fn body<T: DeserializeOwned>(request: Request<Incoming>) -> Result<T, Failure> {
    let is_json = request
        .headers()
        .get(CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
    if !is_json {
        let what = "send the body as application/json".to_owned();
        return Err(Failure(StatusCode::UNSUPPORTED_MEDIA_TYPE, what));
    }
    let limited = Limited::new(request.into_body(), BODY_BYTES_MAX).collect();
    let bytes = match tokio::time::timeout(BODY_PATIENCE, limited).await {
        Ok(Ok(collected)) => collected.to_bytes(),
        Ok(Err(_)) => {
            let what = format!("the body has more than {BODY_BYTES_MAX} bytes, or was cut off");
            return Err(Failure(StatusCode::PAYLOAD_TOO_LARGE, what));
        }
        Err(_) => return Err(Failure(StatusCode::REQUEST_TIMEOUT, "the body takes too long".to_owned())),
    };
    serde_json::from_slice(&bytes).map_err(|error| {
        Failure(StatusCode::UNPROCESSABLE_ENTITY, format!("the body is not understood: {error}"))
    })
}

fn json(value: &impl Serialize) -> Answer {
    whole("application/json", serde_json::to_string(value).unwrap_or_default())
}

fn whole(kind: &'static str, text: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Content::whole(text));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

/// A parameter after the path, without its escapes.
fn parameter(request: &Request<Incoming>, name: &str) -> Option<String> {
    let pairs = request.uri().query()?.split('&').filter_map(|pair| pair.split_once('='));
    pairs.into_iter().find(|(key, _)| *key == name).map(|(_, value)| unescaped(value))
}

fn number(
    request: &Request<Incoming>,
    name: &str,
    otherwise: u64,
    range: std::ops::RangeInclusive<u64>,
) -> Result<u64, Failure> {
    let Some(text) = parameter(request, name) else {
        return Ok(otherwise);
    };
    text.parse().ok().filter(|number| range.contains(number)).ok_or_else(|| {
        let what = format!("{name}={text}: use {} to {}", range.start(), range.end());
        Failure(StatusCode::UNPROCESSABLE_ENTITY, what)
    })
}

/// Text of a URL: `%41` and `+`.
fn unescaped(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((&first, more)) = rest.split_first() {
        let hex = |at: usize| more.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        match (first, hex(0), hex(1)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push(u8::try_from(high * 16 + low).unwrap_or(b'?'));
                rest = &more[2..];
            }
            (b'+', ..) => {
                bytes.push(b' ');
                rest = more;
            }
            _ => {
                bytes.push(first);
                rest = more;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_of_addresses_are_read() {
        assert_eq!(unescaped("a%20b+c%3Cimg%3E%"), "a b c<img>%");
        assert_eq!(unescaped("%zz%4"), "%zz%4");
        assert_eq!(unescaped("%ff"), "\u{fffd}");
    }
}
