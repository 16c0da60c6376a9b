//! What comes through the control socket is a message that survives another round, or an error.

use takt_daemon::control::ask::Ask;
use takt_ipc::message::Message;

/// Where a message has its version.
const VERSION_AT: usize = 4;

pub fn message(bytes: &[u8]) {
    read(bytes);
    // The same in the current version, which may be another one than when it was kept.
    let mut current = bytes.to_vec();
    let version = takt_ipc::VERSION.to_le_bytes();
    current.iter_mut().skip(VERSION_AT).zip(version).for_each(|(byte, new)| *byte = new);
    if current != bytes {
        read(&current);
    }
}

fn read(bytes: &[u8]) {
    let Ok(message) = Message::decode(bytes) else {
        return;
    };
    assert_eq!(Message::decode(&message.encode()).as_ref(), Ok(&message));
    if let Message::Ask { text } = message
        && let Ok(Ask::Set { terms, .. }) = serde_json::from_str(&text)
    {
        // Whatever numbers it contains, they make sense or are refused in words.
        let _sense = terms.checked();
    }
}
