//! The control socket.
//!
//! Datagrams that arrive whole and in order, between processes of one machine, with the peer's
//! identity vouched for by the kernel and descriptors passed along.

use std::io::{Error, ErrorKind, Result};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, Shutdown, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind,
    connect, listen, recv, recvmsg, sendmsg, shutdown, socket_with, sockopt,
};
use rustix::time::Timespec;

use crate::message::{MESSAGE_MAX, Message};

/// Most descriptors that one message carries.
pub const FDS_MAX: usize = 4;
/// Connections that may wait to be accepted.
const BACKLOG: i32 = 64;
/// Most messages that a client can have sent without their being read: the kernel keeps some hundreds.
const UNREAD_MAX: usize = 4096;
/// Whether descriptors may be passed to a socket; the number is that of most architectures.
const SO_PASSRIGHTS: libc::c_int = 83;

/// The process on the other side, as the kernel knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Peer {
    /// Its process when it connected, or when it began to listen; 0 if that is in a namespace that we
    /// cannot see, as processes of containers are from others.
    pub pid: u32,
    /// Its user.
    pub uid: u32,
}

impl Peer {
    /// The process on the other side of a socket.
    pub fn of(socket: &impl AsFd) -> Result<Self> {
        let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
        #[expect(clippy::cast_possible_truncation, reason = "a dozen bytes")]
        let mut size = size_of_val(&peer) as libc::socklen_t;
        let (fd, level) = (socket.as_fd().as_raw_fd(), libc::SOL_SOCKET);
        // SAFETY: there is room for the answer, and its size is told.
        let asked =
            unsafe { libc::getsockopt(fd, level, libc::SO_PEERCRED, (&raw mut peer).cast(), &raw mut size) };
        if asked != 0 {
            return Err(Error::last_os_error());
        }
        Ok(Self { pid: u32::try_from(peer.pid).unwrap_or_default(), uid: peer.uid })
    }
}

/// A listening socket.
#[derive(Debug)]
pub struct Listener(OwnedFd);

impl Listener {
    /// Listens at `path`, which must not exist.
    pub fn bind(path: &Path) -> Result<Self> {
        let socket = open(SocketFlags::NONBLOCK)?;
        bind(&socket, &SocketAddrUnix::new(path)?)?;
        listen(&socket, BACKLOG)?;
        Ok(Self(socket))
    }

    /// What the kernel does with messages that have descriptors, where it can (Linux 6.16 and later); says
    /// whether it can.
    pub fn set_descriptors(&self, descriptors: Descriptors) -> bool {
        set_descriptors(&self.0, descriptors)
    }

    /// The next connection, if there is one.
    pub fn accept(&self) -> Result<Option<(Connection, Peer)>> {
        match accept_with(&self.0, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
            Ok(socket) => {
                // Tells an empty message from the end of all messages.
                sockopt::set_socket_passcred(&socket, true)?;
                let connection = Connection(socket);
                let peer = connection.peer()?;
                Ok(Some((connection, peer)))
            }
            Err(error) if Error::from(error).kind() == ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// One end of a connection.
#[derive(Debug)]
pub struct Connection(OwnedFd);

/// What a message that has not been taken looks like.
struct Peeked {
    length: usize,
    has_descriptors: bool,
    /// There is none, and there will be none.
    is_end: bool,
}

/// Something that arrived.
#[derive(Debug)]
pub struct Received {
    /// What was said.
    pub message: Message,
    /// The descriptors that came along.
    pub fds: Vec<OwnedFd>,
}

impl Connection {
    /// Connects to the daemon; sending and receiving take `patience` at most.
    pub fn connect(path: &Path, patience: Duration) -> Result<Self> {
        let socket = open(SocketFlags::empty())?;
        sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(patience))?;
        sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, Some(patience))?;
        let address = SocketAddrUnix::new(path)?;
        retry_on_intr(|| connect(&socket, &address))?;
        Ok(Self(socket))
    }

    /// The same without ever waiting: the daemon may be stopped.
    pub fn connect_at_once(path: &Path) -> Result<Self> {
        let socket = open(SocketFlags::NONBLOCK)?;
        connect(&socket, &SocketAddrUnix::new(path)?)?;
        Ok(Self(socket))
    }

    /// Waits for something to receive, for `patience` at most, whatever signals the program gets; says
    /// whether there is something, be it the news that the other side is gone.
    pub fn wait(&self, patience: Duration) -> Result<bool> {
        let mut fds = [PollFd::new(&self.0, PollFlags::IN)];
        let began = Instant::now();
        loop {
            let rest = patience.saturating_sub(began.elapsed());
            let timeout = Timespec {
                tv_sec: i64::try_from(rest.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: rest.subsec_nanos().into(),
            };
            match poll(&mut fds, Some(&timeout)) {
                Err(Errno::INTR) => {}
                ready => return Ok(ready? > 0),
            }
        }
    }

    /// Whether the other side is gone, at once.
    pub fn is_hung_up(&self) -> bool {
        let mut fds = [PollFd::new(&self.0, PollFlags::RDHUP)];
        let gone = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
        poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok() && fds[0].revents().intersects(gone)
    }

    /// The process on the other side: the one that connected, or the one that listens.
    pub fn peer(&self) -> Result<Peer> {
        Peer::of(&self.0)
    }

    /// Sends a message with descriptors.
    pub fn send(&self, message: &Message, fds: &[BorrowedFd<'_>]) -> Result<()> {
        let bytes = message.encode();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let fits = fds.len() <= FDS_MAX;
        if !fits || (!fds.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(fds))) {
            return Err(Error::new(ErrorKind::InvalidInput, "too many descriptors for one message"));
        }
        let parts = [std::io::IoSlice::new(&bytes)];
        retry_on_intr(|| sendmsg(&self.0, &parts, &mut ancillary, SendFlags::NOSIGNAL))?;
        Ok(())
    }

    /// The next message on the client's end, with the daemon's descriptors; `None` if the other side is
    /// gone, an error of kind [`ErrorKind::WouldBlock`] if there is none yet, [`ErrorKind::InvalidData`]
    /// if it is no message.
    pub fn receive(&self) -> Result<Option<Received>> {
        let mut bytes = vec![0; MESSAGE_MAX + 1];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [std::io::IoSliceMut::new(&mut bytes)];
        let received =
            retry_on_intr(|| recvmsg(&self.0, &mut parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC))?;
        // Descriptors are taken first, so that they are closed whatever comes of the message.
        let mut fds = Vec::new();
        for part in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = part {
                fds.extend(rights);
            }
        }
        if received.bytes == 0 {
            return Ok(None);
        }
        let message = Message::decode(&bytes[..received.bytes])
            .map_err(|invalid| Error::new(ErrorKind::InvalidData, invalid))?;
        Ok(Some(Received { message, fds }))
    }
}

impl Connection {
    /// The next message of a connection that was [accepted](Listener::accept), as [`Self::receive`] has it.
    /// A message with descriptors stays where it is, so that none of them is ever closed by this process
    /// on the calling thread, which can take as long as the sender likes: an error of kind
    /// [`ErrorKind::InvalidInput`].
    pub fn receive_message(&self) -> Result<Option<Message>> {
        let mut bytes = vec![0; MESSAGE_MAX + 1];
        let peeked = self.peek(&mut bytes)?;
        if peeked.has_descriptors {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                "it passes descriptors, which the daemon does not take",
            ));
        }
        if peeked.is_end {
            return Ok(None);
        }
        self.discard()?;
        let message = Message::decode(&bytes[..peeked.length]);
        message.map(Some).map_err(|invalid| Error::new(ErrorKind::InvalidData, invalid))
    }

    /// Ends an accepted connection for both sides and throws away what was not read. Where descriptors
    /// are among that, the connection comes back, and closing it can take as long as their sender likes.
    pub fn hang_up(self) -> Option<Self> {
        // Nothing can be sent to it from now on. It fails only where the other side is gone.
        shutdown(&self.0, Shutdown::Both).unwrap_or_default();
        let mut none = [0; 0];
        for _ in 0..UNREAD_MAX {
            match self.peek(&mut none) {
                Ok(Peeked { has_descriptors: true, .. }) => return Some(self),
                Ok(Peeked { is_end: true, .. }) | Err(_) => return None,
                Ok(_) => self.discard().unwrap_or_default(),
            }
        }
        Some(self)
    }

    fn peek(&self, bytes: &mut [u8]) -> Result<Peeked> {
        // Room for the credentials that come with every message, and none for descriptors.
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmCredentials(1))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [std::io::IoSliceMut::new(bytes)];
        let received = retry_on_intr(|| recvmsg(&self.0, &mut parts, &mut ancillary, RecvFlags::PEEK))?;
        Ok(Peeked {
            length: received.bytes,
            has_descriptors: received.flags.contains(ReturnFlags::CTRUNC),
            is_end: ancillary.drain().next().is_none(),
        })
    }

    /// Takes a message that has no descriptors.
    fn discard(&self) -> Result<()> {
        let mut none = [0; 0];
        retry_on_intr(|| recv(&self.0, &mut none, RecvFlags::empty()))?;
        Ok(())
    }
}

impl From<Connection> for OwnedFd {
    fn from(connection: Connection) -> Self {
        connection.0
    }
}

/// What the kernel does with messages that have descriptors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Descriptors {
    /// It passes them on.
    Passed,
    /// It refuses them: their senders get an error.
    Refused,
}

/// Sets that for messages to a socket and to what it accepts; says whether the kernel can.
pub fn set_descriptors(socket: &impl AsFd, descriptors: Descriptors) -> bool {
    let (fd, on) = (socket.as_fd().as_raw_fd(), i32::from(descriptors == Descriptors::Passed));
    #[expect(clippy::cast_possible_truncation, reason = "four bytes")]
    let size = size_of_val(&on) as libc::socklen_t;
    // SAFETY: the option is a number, which is there, and its size is told.
    let set = unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, SO_PASSRIGHTS, (&raw const on).cast(), size) };
    set == 0
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn open(flags: SocketFlags) -> Result<OwnedFd> {
    Ok(socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags | SocketFlags::CLOEXEC, None)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Standing;
    use crate::message::{Hello, Welcome};
    use crate::region::Region;
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicU32, Ordering};

    const PATIENCE: Duration = Duration::from_secs(20);

    fn listener(name: &str) -> (Listener, PathBuf) {
        let path = std::env::temp_dir().join(format!("takt-test-{name}-{}", std::process::id()));
        std::fs::remove_file(&path).unwrap_or_default();
        (Listener::bind(&path).expect("bind"), path)
    }

    fn accept(listener: &Listener) -> (Connection, Peer) {
        loop {
            if let Some(accepted) = listener.accept().expect("accept") {
                return accepted;
            }
            std::thread::yield_now();
        }
    }

    #[test]
    fn messages_and_memory_cross_and_the_peer_is_known() {
        let (listener, path) = listener("cross");
        let client = Connection::connect(&path, PATIENCE).expect("connect");
        let (daemon, peer) = accept(&listener);
        assert_eq!(peer.pid, std::process::id());
        assert_eq!(peer.uid, rustix::process::getuid().as_raw());
        assert_eq!(client.peer().expect("known"), peer, "both are this process");
        assert_eq!(daemon.receive().expect_err("nothing yet").kind(), ErrorKind::WouldBlock);

        let hello = Message::Hello(Hello { name: "dial".into(), ..Hello::default() });
        client.send(&hello, &[]).expect("send");
        let received = daemon.receive().expect("whole").expect("there");
        assert_eq!(received.message, hello);

        let (region, fd) = Region::create().expect("memfd");
        let standing = Standing { paced: true, protected: true, ..Standing::default() };
        let welcome =
            Message::Welcome(Welcome { app: 3, admission: "protected".into(), standing, spin_us: 7 });
        daemon.send(&welcome, &[fd.as_fd()]).expect("send");
        let received = client.receive().expect("whole").expect("there");
        assert_eq!(received.message, welcome);
        let shared = Region::open(received.fds[0].as_fd()).expect("mapped");
        shared.client_ends().0.push(&[5; 8]).expect("room");
        assert_eq!(region.daemon_ends().0.pop(), Ok(Some([5; 8])));

        assert!(!daemon.is_hung_up() && !daemon.wait(Duration::ZERO).expect("asked"));
        drop(client);
        assert!(daemon.is_hung_up() && daemon.wait(PATIENCE).expect("asked"));
        assert!(daemon.receive().expect("no error").is_none(), "gone");
        std::fs::remove_file(path).expect("remove");
    }

    static SIGNALS: AtomicU32 = AtomicU32::new(0);

    extern "C" fn interrupted(_: libc::c_int) {
        SIGNALS.fetch_add(1, Ordering::SeqCst);
    }

    #[test]
    fn signals_do_not_end_waiting() {
        let (listener, path) = listener("signals");
        let client = Connection::connect(&path, PATIENCE).expect("connect");
        let (daemon, _) = accept(&listener);
        let handler = interrupted as extern "C" fn(libc::c_int);
        // SAFETY: the handler adds to an atomic, and no other test uses this signal.
        unsafe { libc::signal(libc::SIGUSR1, handler as libc::sighandler_t) };
        std::thread::scope(|scope| {
            let (tell, told) = std::sync::mpsc::sync_channel(1);
            let waits = scope.spawn(move || {
                // SAFETY: it has no conditions.
                tell.send(unsafe { libc::pthread_self() }).expect("the test asks");
                client.wait(PATIENCE)
            });
            let thread = told.recv().expect("it says who it is");
            for sent in 1..=20 {
                // SAFETY: the thread is joined later, so it is there.
                unsafe { libc::pthread_kill(thread, libc::SIGUSR1) };
                while SIGNALS.load(Ordering::SeqCst) < sent {
                    std::thread::yield_now();
                }
            }
            assert!(!waits.is_finished(), "nothing has come");
            daemon.send(&Message::Hello(Hello::default()), &[]).expect("send");
            assert!(waits.join().expect("no panic").expect("it waits on"));
        });
        std::fs::remove_file(path).expect("remove");
    }

    #[test]
    fn rubbish_and_extra_descriptors_do_no_harm() {
        let (listener, path) = listener("rubbish");
        let client = Connection::connect(&path, PATIENCE).expect("connect");
        let (daemon, _) = accept(&listener);
        rustix::net::send(&client, b"GET / HTTP/1.1", SendFlags::empty()).expect("send");
        assert_eq!(daemon.receive_message().expect_err("rubbish").kind(), ErrorKind::InvalidData);
        let stdin = std::io::stdin();
        let many = [stdin.as_fd(); FDS_MAX + 1];
        let hello = Message::Hello(Hello::default());
        assert!(daemon.send(&hello, &many).is_err());
        daemon.send(&hello, &many[..FDS_MAX]).expect("send");
        assert_eq!(client.receive().expect("whole").expect("there").fds.len(), FDS_MAX);
        std::fs::remove_file(path).expect("remove");
    }

    #[test]
    fn messages_with_descriptors_are_left_unread() {
        let (listener, path) = listener("unread");
        let connect = || Connection::connect(&path, PATIENCE).expect("connect");
        let (client, stdin) = (connect(), std::io::stdin());
        let (daemon, _) = accept(&listener);
        let hello = Message::Hello(Hello { name: "dial".into(), ..Hello::default() });
        client.send(&hello, &[]).expect("send");
        client.send(&hello, &[stdin.as_fd()]).expect("send");
        assert_eq!(daemon.receive_message().expect("whole"), Some(hello.clone()));
        for _ in 0..2 {
            assert_eq!(daemon.receive_message().expect_err("left").kind(), ErrorKind::InvalidInput);
        }
        assert!(daemon.hang_up().is_some(), "it has a descriptor still");

        // Neither do empty messages hide one.
        let client = connect();
        let (daemon, _) = accept(&listener);
        for _ in 0..3 {
            rustix::net::send(&client, b"", SendFlags::empty()).expect("send");
        }
        assert_eq!(daemon.receive_message().expect_err("empty").kind(), ErrorKind::InvalidData);
        client.send(&hello, &[stdin.as_fd()]).expect("send");
        drop(client);
        assert!(daemon.hang_up().is_some(), "it has a descriptor still");

        let client = connect();
        let (daemon, _) = accept(&listener);
        (0..3).for_each(|_| client.send(&hello, &[]).expect("send"));
        daemon.send(&hello, &[]).expect("send");
        assert!(daemon.hang_up().is_none(), "it has none, and is closed");
        assert_eq!(client.receive().expect("whole").expect("there").message, hello, "what was said is heard");
        assert!(client.receive().expect("no error").is_none());
        std::fs::remove_file(path).expect("remove");
    }

    #[test]
    fn the_kernel_refuses_descriptors_where_it_can() {
        let (listener, path) = listener("kernel");
        let client = || Connection::connect(&path, PATIENCE).expect("connect");
        let stdin = std::io::stdin();
        let send = |client: &Connection| client.send(&Message::Hello(Hello::default()), &[stdin.as_fd()]);
        let can = listener.set_descriptors(Descriptors::Refused);
        assert_eq!(send(&client()).is_err(), can);
        listener.set_descriptors(Descriptors::Passed);
        send(&client()).expect("passed on, as older kernels do");
        listener.set_descriptors(Descriptors::Refused);
        client().send(&Message::Hello(Hello::default()), &[]).expect("without descriptors it may");
        std::fs::remove_file(path).expect("remove");
    }
}
