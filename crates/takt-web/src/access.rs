//! Which requests are answered: those for this machine, from its own pages, with a token.
//!
//! A browser sends requests on behalf of any page that it shows. Three things keep other pages out:
//! the token is in a header that a page of another origin cannot set, and never in a cookie; an `Origin` that is not
//! our own is refused; and so is a `Host` that is not ours, so that no name of another site can stand for this machine.

use std::fmt;
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::net::IpAddr;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::str::FromStr;

use anyhow::{Context, bail};
use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, HOST, HeaderName, ORIGIN};

/// The header with the token, beside `Authorization: Bearer`, which a proxy may need for itself.
pub static TOKEN_HEADER: HeaderName = HeaderName::from_static("x-takt-token");
/// Random bytes of a token.
const TOKEN_BYTES: usize = 24;
/// Shortest token that a file may have.
const TOKEN_CHARS_MIN: usize = 16;
/// Longest file of tokens.
const FILE_BYTES_MAX: u64 = 4096;

/// What a token allows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Right {
    /// To look.
    View,
    /// To change what the daemon lets the user change.
    Steer,
}

/// The tokens.
#[derive(Clone, PartialEq, Eq)]
pub struct Tokens {
    view: String,
    steer: Option<String>,
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // They are secrets.
        f.debug_struct("Tokens").field("may_steer", &self.steer.is_some()).finish_non_exhaustive()
    }
}

impl Tokens {
    /// New ones.
    pub fn random() -> std::io::Result<Self> {
        Ok(Self { view: random()?, steer: Some(random()?) })
    }

    /// Those of a file, with a line `view TOKEN` and a line `steer TOKEN` that may be missing. A file that is not
    /// there is made with new ones, for its user alone to read.
    pub fn of_file(path: &Path) -> anyhow::Result<Self> {
        let shown = path.display();
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
            Ok(mut file) => {
                let tokens = Self::random().context("cannot make tokens")?;
                let text = format!("view {}\nsteer {}\n", tokens.view, tokens.steer.as_deref().unwrap_or(""));
                file.write_all(text.as_bytes()).with_context(|| format!("cannot write {shown}"))?;
                Ok(tokens)
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                let file = std::fs::File::open(path).with_context(|| format!("cannot read {shown}"))?;
                let mode = file.metadata().with_context(|| format!("cannot read {shown}"))?.mode();
                if mode & 0o007 != 0 {
                    bail!("{shown}: other users can read or write it; chmod 600 {shown}");
                }
                let mut text = String::new();
                file.take(FILE_BYTES_MAX)
                    .read_to_string(&mut text)
                    .with_context(|| format!("cannot read {shown}"))?;
                Self::parse(&text).map_err(|problem| anyhow::anyhow!("{shown}: {problem}"))
            }
            Err(error) => Err(error).with_context(|| format!("cannot write {shown}")),
        }
    }

    fn parse(text: &str) -> Result<Self, String> {
        let (mut view, mut steer) = (None, None);
        for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let number = at + 1;
            let (kind, token) = line.trim().split_once(' ').unwrap_or_else(|| (line.trim(), ""));
            let token = token.trim();
            if token.len() < TOKEN_CHARS_MIN || !token.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
                return Err(format!(
                    "line {number}: a token has {TOKEN_CHARS_MIN} or more letters and digits; remove the file to have \
                     one made"
                ));
            }
            let place = match kind {
                "view" => &mut view,
                "steer" => &mut steer,
                _ => return Err(format!("line {number}: begin it with view or steer")),
            };
            if place.replace(token.to_owned()).is_some() {
                return Err(format!("line {number}: there is a line for {kind} above; keep one"));
            }
        }
        match view {
            Some(view) if steer.as_ref() == Some(&view) => {
                Err("both tokens are the same; use two different ones".to_owned())
            }
            Some(view) => Ok(Self { view, steer }),
            None => Err("there is no line `view TOKEN`".to_owned()),
        }
    }

    /// Without the one for steering.
    #[must_use]
    pub fn read_only(self) -> Self {
        Self { steer: None, ..self }
    }

    /// The token for looking.
    pub fn view(&self) -> &str {
        &self.view
    }

    /// The token for steering, if there is one.
    pub fn steer(&self) -> Option<&str> {
        self.steer.as_deref()
    }

    /// What the token of a request allows.
    pub fn right(&self, headers: &HeaderMap) -> Option<Right> {
        let token = headers.get(&TOKEN_HEADER).map(hyper::header::HeaderValue::as_bytes).or_else(|| {
            let bearer = headers.get(AUTHORIZATION)?.as_bytes();
            bearer.strip_prefix(b"Bearer ").or_else(|| bearer.strip_prefix(b"bearer "))
        })?;
        let steer = self.steer.as_ref().is_some_and(|steer| is_same(steer.as_bytes(), token));
        let view = is_same(self.view.as_bytes(), token);
        match (steer, view) {
            (true, _) => Some(Right::Steer),
            (false, true) => Some(Right::View),
            (false, false) => None,
        }
    }
}

/// Compares without telling by the time it takes how much is the same.
fn is_same(secret: &[u8], said: &[u8]) -> bool {
    secret.len() == said.len() && secret.iter().zip(said).fold(0, |other, (a, b)| other | (a ^ b)) == 0
}

/// A token.
fn random() -> std::io::Result<String> {
    let mut bytes = [0; TOKEN_BYTES];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Where pages come from that may use the console: a scheme and a host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Origin {
    text: String,
    authority: String,
}

impl FromStr for Origin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim_end_matches('/').to_ascii_lowercase();
        let authority = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']');
        match authority {
            Some(authority) if !authority.is_empty() && authority.chars().all(plain) => {
                Ok(Self { authority: authority.to_owned(), text })
            }
            _ => Err("write a scheme and a host, such as https://car.example".to_owned()),
        }
    }
}

/// Why a request is not for us.
pub(crate) fn refusal(headers: &HeaderMap, origins: &[Origin]) -> Option<&'static str> {
    let text =
        |name: HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or("?").to_ascii_lowercase());
    let Some(host) = text(HOST) else {
        return Some("the request names no host");
    };
    let proxied = origins.iter().any(|origin| origin.authority == host);
    if !proxied && !is_this_machine(&host) {
        return Some("this host is not served; see takt web --origin");
    }
    match text(ORIGIN) {
        None => {}
        Some(origin) if origins.iter().any(|known| known.text == origin) => {}
        Some(origin) if !proxied && origin == format!("http://{host}") => {}
        Some(_) => return Some("pages of other origins are refused; see takt web --origin"),
    }
    match text(HeaderName::from_static("sec-fetch-site")).as_deref() {
        // A link on another page may lead here; what that page may not do is ask.
        Some("cross-site" | "same-site")
            if text(HeaderName::from_static("sec-fetch-mode")).as_deref() != Some("navigate") =>
        {
            Some("pages of other sites are refused")
        }
        _ => None,
    }
}

/// Whether a host with or without a port means this machine, whatever names resolve to.
fn is_this_machine(host: &str) -> bool {
    let name = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((name, rest)) if rest.is_empty() || rest.starts_with(':') => name,
        Some(_) => return false,
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn headers(list: &[(&'static str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), value.parse().expect("plain"))
        };
        list.iter().map(pair).collect()
    }

    #[test]
    fn only_this_machine_and_its_pages_are_heard() {
        let proxy: Origin = "https://Car.example/".parse().expect("an origin");
        let refused =
            |list: &[(&'static str, &str)]| refusal(&headers(list), std::slice::from_ref(&proxy)).is_some();
        for host in ["127.0.0.1:9550", "localhost", "localhost:1", "[::1]:9550", "127.9.9.9"] {
            assert!(!refused(&[("host", host)]), "{host}");
            assert!(!refused(&[("host", host), ("origin", &format!("http://{host}"))]));
            for origin in ["http://evil.example", "null", "http://127.0.0.1:9551", &format!("https://{host}")]
            {
                assert!(refused(&[("host", host), ("origin", origin)]), "{host} {origin}");
            }
        }
        for host in
            ["evil.example", "evil.example:9550", "127.0.0.1.evil.example", "[::1]evil", "192.168.0.1", ""]
        {
            assert!(refused(&[("host", host)]), "{host}");
        }
        assert!(refused(&[]));
        assert!(!refused(&[("host", "car.example"), ("origin", "https://car.example")]));
        assert!(refused(&[("host", "car.example"), ("origin", "http://car.example")]));
        assert!(refused(&[
            ("host", "localhost"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-mode", "no-cors")
        ]));
        assert!(!refused(&[
            ("host", "localhost"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-mode", "navigate")
        ]));
        assert!(!refused(&[("host", "localhost"), ("sec-fetch-site", "same-origin")]));
        for bad in ["car.example", "ftp://x", "https://", "https://a/b", "https://a b"] {
            assert!(bad.parse::<Origin>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_token_allows_what_it_is_for() {
        let tokens = Tokens::random().expect("random bytes");
        let (view, steer) = (tokens.view().to_owned(), tokens.steer().expect("both").to_owned());
        assert_ne!(view, steer);
        let right = |tokens: &Tokens, token: &str| tokens.right(&headers(&[("x-takt-token", token)]));
        assert_eq!([right(&tokens, &view), right(&tokens, &steer)], [Some(Right::View), Some(Right::Steer)]);
        assert_eq!([right(&tokens, ""), right(&tokens, &view[1..]), right(&tokens, "x")], [None; 3]);
        assert_eq!(
            tokens.right(&headers(&[("authorization", &format!("Bearer {view}"))])),
            Some(Right::View)
        );
        assert_eq!(tokens.right(&headers(&[("authorization", "Basic eDp5")])), None);
        assert_eq!(tokens.right(&headers(&[])), None);
        assert_eq!(right(&tokens.read_only(), &steer), None);
    }

    #[test]
    fn a_file_keeps_tokens_for_its_user_alone() {
        let path = std::env::temp_dir().join(format!("takt-tokens-{}", std::process::id()));
        std::fs::remove_file(&path).unwrap_or_default();
        let made = Tokens::of_file(&path).expect("made");
        assert_eq!(Tokens::of_file(&path).expect("read"), made);
        let open = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(&path, open).expect("our file");
        assert!(Tokens::of_file(&path).expect_err("open to all").to_string().contains("chmod 600"));
        std::fs::remove_file(&path).expect("our file");
        let long = "a".repeat(TOKEN_CHARS_MIN);
        assert_eq!(Tokens::parse(&format!("view {long}\n")).expect("fine").steer(), None);
        for (bad, part) in [
            ("", "no line `view"),
            ("view short", "line 1"),
            ("\nlook aaaaaaaaaaaaaaaaaa", "line 2: begin"),
            (&format!("view {long}\nview {long}"), "line 2: there is"),
            (&format!("view {long}\nsteer {long}"), "the same"),
            (&format!("view {long}\"<b>"), "letters and digits"),
        ] {
            let problem = Tokens::parse(bad).expect_err("bad");
            assert!(problem.contains(part), "{bad}: {problem}");
        }
    }
}
