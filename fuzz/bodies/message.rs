//! What comes through the control socket is a message that survives another round, or an error.

use takt_daemon::control::ask::Ask;
use takt_ipc::message::Message;

pub fn message(bytes: &[u8]) {
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
