//! The console as a whole: its settings, its threads, its end.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use anyhow::Context;
use takt_daemon::control::socket_file::SocketFile;
use takt_daemon::observe::exporter::Address;
use tokio::net::{TcpListener, UnixListener};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use crate::access::{Origin, Tokens};
use crate::board::Board;
use crate::connections::{self, Listener};
use crate::routes::Site;
use crate::timeline::Timeline;

/// Threads for work that blocks: questions to the daemon, and simulations.
const BLOCKING_THREADS_MAX: usize = 8;

/// What a console is to be.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where it listens.
    pub listen: Address,
    /// Who may use it.
    pub tokens: Tokens,
    /// Where else its page is shown.
    pub origins: Vec<Origin>,
    /// The daemon's socket, if it is not at the usual places.
    pub socket: Option<PathBuf>,
}

/// A console that listens.
#[derive(Debug)]
pub struct Console {
    runtime: Runtime,
    listener: Listener,
    address: Address,
    site: Arc<Site>,
    /// Removed with the console.
    _file: Option<SocketFile>,
}

impl Console {
    /// Listens; it serves from [`Self::serve_until_signalled`] or [`Self::in_background`] on.
    pub fn start(settings: Settings) -> anyhow::Result<Self> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(BLOCKING_THREADS_MAX)
            .build()
            .context("cannot start the console's event loop")?;
        let Settings { listen, tokens, origins, socket } = settings;
        let cannot = format!("cannot listen at {listen}");
        let (listener, file, address) = runtime.block_on(async { bind(listen).await }).context(cannot)?;
        let board = Board::start(socket.clone()).context("cannot start a thread")?;
        let site = Arc::new(Site::new(tokens, origins, board, Timeline::new(socket)));
        Ok(Self { runtime, listener, address, site, _file: file })
    }

    /// Where it listens, with the port that the system chose.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// What to open, for people.
    pub fn links(&self) -> String {
        let tokens = self.site.tokens();
        let link = |token: &str| match &self.address {
            Address::Loopback(address) => format!("http://{address}/#token={token}"),
            address => format!("{address}, token {token}"),
        };
        let steer =
            tokens.steer().map_or_else(String::new, |token| format!("look and steer: {}\n", link(token)));
        format!("{steer}look only:      {}\n", link(tokens.view()))
    }

    /// Serves until SIGINT or SIGTERM.
    pub fn serve_until_signalled(self) -> anyhow::Result<()> {
        let Self { runtime, listener, site, _file, .. } = self;
        runtime.block_on(async move {
            let mut interrupt = signal(SignalKind::interrupt()).context("cannot catch signals")?;
            let mut terminate = signal(SignalKind::terminate()).context("cannot catch signals")?;
            let serving = tokio::spawn(connections::serve(listener, site));
            // Either comes.
            std::future::poll_fn(|context| {
                let ended =
                    interrupt.poll_recv(context).is_ready() || terminate.poll_recv(context).is_ready();
                if ended { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
            })
            .await;
            serving.abort();
            anyhow::Ok(())
        })?;
        // A simulation may still run.
        runtime.shutdown_background();
        Ok(())
    }

    /// Serves on a thread of its own until the answer is dropped.
    pub fn in_background(self) -> std::io::Result<Serving> {
        let Self { runtime, listener, site, address, _file } = self;
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::Builder::new().name("takt-web".to_owned()).spawn(move || {
            let _file = _file;
            runtime.block_on(async move {
                let serving = tokio::spawn(connections::serve(listener, site));
                // Dropping the other end is the sign.
                stopped.await.unwrap_or_default();
                serving.abort();
            });
            runtime.shutdown_background();
        })?;
        Ok(Serving { stop: Some(stop), thread: Some(thread), address })
    }
}

/// A console that serves; dropping it ends it.
#[derive(Debug)]
pub struct Serving {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    address: Address,
}

impl Serving {
    /// Where it listens.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The port, if it listens at one.
    pub fn port(&self) -> Option<SocketAddr> {
        match self.address {
            Address::Loopback(address) => Some(address),
            Address::Unix(_) => None,
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic has printed its message.
            drop(thread.join());
        }
    }
}

async fn bind(address: Address) -> std::io::Result<(Listener, Option<SocketFile>, Address)> {
    match address {
        Address::Loopback(address) => {
            let tcp = TcpListener::bind(address).await?;
            let address = Address::Loopback(tcp.local_addr()?);
            Ok((Listener::Tcp(tcp), None, address))
        }
        Address::Unix(path) => {
            let (unix, file) = SocketFile::bind(path, |path| {
                let unix = UnixListener::bind(path)?;
                std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
                Ok(unix)
            })?;
            let address = Address::Unix(file.path().to_owned());
            Ok((Listener::Unix(unix), Some(file), address))
        }
    }
}
