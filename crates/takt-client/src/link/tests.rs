use takt_ipc::message::Message;
use takt_ipc::socket::Listener as Socket;

use super::*;

#[test]
fn a_daemon_that_stays_away_is_reported_once() {
    let socket = std::env::temp_dir().join(format!("takt-away-{}", std::process::id()));
    let mut link = Link::new(Some(socket), Hello::default(), |_| {}, Patience::default());
    link.connect();
    assert!(link.said().starts_with("not scheduled: no daemon answers"), "{}", link.said());
    link.lose("the daemon is gone");
    for _ in 0..2 {
        // The time of the next look has come.
        link.retry_at = Time::from_ns(1);
        link.connect();
        assert!(link.retry_at > Time::from_ns(1), "it looked");
        assert_eq!(link.said(), "the daemon is gone; the program runs on unscheduled");
    }
}

/// What a daemon answers to the next client; it keeps the connection.
fn answer(listener: &Socket, again_ms: Option<u32>) -> Connection {
    let connection = loop {
        if let Some((connection, _)) = listener.accept().expect("it listens") {
            break connection;
        }
        std::thread::yield_now();
    };
    assert!(connection.wait(Duration::from_secs(30)).expect("open"), "the client says hello");
    let refused = Message::Refused { reason: "no place is free".to_owned(), again_ms };
    connection.send(&refused, &[]).expect("sent");
    connection
}

#[test]
fn a_client_that_is_refused_for_now_comes_back_when_it_was_told_to() {
    let socket = std::env::temp_dir().join(format!("takt-not-now-{}", std::process::id()));
    std::fs::remove_file(&socket).unwrap_or_default();
    let listener = Socket::bind(&socket).expect("bound");
    let new = || Link::new(Some(socket.clone()), Hello::default(), |_| {}, Patience::default());
    let connect = |link: &mut Link, again_ms| {
        std::thread::scope(|scope| {
            let daemon = scope.spawn(|| answer(&listener, again_ms));
            let asked = clock::now();
            link.connect();
            drop(daemon.join().expect("no panic"));
            asked
        })
    };
    for (again_ms, pause) in [(5_000, Span::from_ms(5_000)), (1, RETRY)] {
        let mut link = new();
        let asked = connect(&mut link, Some(again_ms));
        assert!(link.retry_at >= asked + pause && link.retry_at < Time::NEVER, "after {again_ms} ms");
        assert!(link.said().starts_with("not scheduled: "), "{}", link.said());
        link.connect();
        assert!(link.joining.is_none() && listener.accept().expect("it listens").is_none(), "not yet");
        // The time has come: it asks again, without waiting for the answer.
        link.retry_at = Time::from_ns(1);
        link.connect();
        assert!(link.joining.is_some(), "it asks again");
        drop(answer(&listener, Some(1)));
    }
    let mut link = new();
    connect(&mut link, None);
    assert_eq!(link.retry_at, Time::NEVER, "that was final");
    std::fs::remove_file(&socket).expect("it was there");
}
