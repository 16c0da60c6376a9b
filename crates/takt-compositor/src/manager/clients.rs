//! Clients come, do something, and go.

use std::os::unix::net::UnixStream;
use std::sync::Arc;

use takt_cockpit::windows::ClientId;

use super::{Connection, Entry, Manager, Teller};
use crate::client::{self, ClientHandle, FromClient, Peer, ToClient};

impl Manager {
    /// Serves a connection in a thread of its own; says which client it is.
    pub(super) fn connect(&mut self, domain: usize, peer: Peer, stream: UnixStream) -> Option<ClientId> {
        let most = self.config.domains[domain].clients_max;
        let there = self.clients.values().filter(|client| client.domain == domain).count();
        if there >= most {
            let refused = Connection::Refused("clients-max", format!("{there} clients are there already"));
            (self.recorder)(&Entry::Client { domain, peer, what: refused });
            return None;
        }
        let started = self.start(domain, peer.clone(), stream);
        let what = match &started {
            Ok(_) => Connection::Opened,
            Err(error) => Connection::Refused("no-thread", error.to_string()),
        };
        (self.recorder)(&Entry::Client { domain, peer, what });
        started.ok()
    }

    fn start(&mut self, domain: usize, peer: Peer, stream: UnixStream) -> std::io::Result<ClientId> {
        self.next_client += 1;
        let id = ClientId(self.next_client);
        let (handle, mailbox) = ClientHandle::new(id, domain, peer, &stream)?;
        let handle = Arc::new(handle);
        let beginning = client::ClientParts {
            client: Arc::clone(&handle),
            stream,
            mailbox,
            domain: self.config.domains[domain].clone(),
            outputs: self.config.outputs.clone(),
            kinds: self.kinds(domain),
            manager: Teller::of_client(id, self.sender.clone()),
            bell: Arc::clone(&self.bell),
        };
        std::thread::Builder::new().name(format!("takt-client-{}", id.0)).spawn(|| client::run(beginning))?;
        self.clients.insert(id, handle);
        Ok(id)
    }

    /// A client did something.
    pub(super) fn hear(&mut self, client: ClientId, note: FromClient) {
        let now = self.now;
        let Some(domain) = self.clients.get(&client).map(|client| client.domain) else {
            return;
        };
        match note {
            FromClient::Appeared(window, claims) => {
                let id = window.id;
                self.shared.insert(id, window);
                if !self.windows.appear(now, id, client, domain, claims) {
                    self.tell(id, ToClient::Configure(id, None));
                    self.shared.remove(&id);
                }
            }
            FromClient::Claimed(id, claims) => self.windows.claim(now, id, claims),
            FromClient::Mapped(id, size, input) => self.windows.map(now, id, size, input),
            FromClient::Unmapped(id) => self.windows.unmap(now, id),
            FromClient::Vanished(id) => {
                self.windows.vanish(now, id);
                self.carry_out();
                self.shared.remove(&id);
            }
            FromClient::Offended { rule, reason } => self.tell_end(client, Connection::Cut(rule, reason)),
            FromClient::Gone(reason) => self.forget(client, reason),
        }
    }

    fn forget(&mut self, client: ClientId, reason: String) {
        self.windows.leave(self.now, client);
        self.carry_out();
        self.shared.retain(|_, window| window.client.id != client);
        self.tell_end(client, Connection::Closed(reason));
        if let Some(handle) = self.clients.remove(&client) {
            handle.cut();
        }
    }

    fn tell_end(&mut self, client: ClientId, what: Connection) {
        if let Some(handle) = self.clients.get(&client) {
            (self.recorder)(&Entry::Client { domain: handle.domain, peer: handle.peer.clone(), what });
        }
    }

    /// Ends the connection of a client, which hears why if it listens.
    pub(super) fn disconnect(&mut self, client: ClientId, reason: String) {
        if let Some(handle) = self.clients.get(&client) {
            handle.tell(ToClient::Disconnect(reason.clone()));
        }
        self.tell_end(client, Connection::Cut("violations-max", reason));
    }

    /// Ends connections of clients whose threads do not take their messages.
    pub(super) fn cut_overrun(&mut self) {
        let overrun: Vec<Arc<ClientHandle>> =
            self.clients.values().filter(|client| client.is_overrun()).cloned().collect();
        for client in overrun {
            client.cut();
            let what = Connection::Cut("overrun", "its thread does not take its messages".to_owned());
            self.tell_end(client.id, what);
            self.windows.leave(self.now, client.id);
            self.carry_out();
            self.shared.retain(|_, window| window.client.id != client.id);
            self.clients.remove(&client.id);
        }
    }
}
