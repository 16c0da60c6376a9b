//! `takt serve --sealed-by`, from the signature to the app whose contents are listed.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use takt_daemon::control::seal;
use takt_ipc::client::{Joined, NotScheduled, join};
use takt_ipc::message::Hello;

use crate::support::daemon::await_that;
use crate::support::{products, skipped, text};

/// Long enough for any machine.
const PATIENCE: Duration = Duration::from_secs(30);
/// The number by which a signature names its key.
const KEY_ID: [u8; 8] = *b"takttest";
const TRUSTED: &str = "takt test";

/// A folder of root with a key, and what is signed by it.
struct Vault(PathBuf);

impl Vault {
    /// None where such a folder or the tool that signs is missing.
    fn new(name: &str) -> Option<Self> {
        let folder = products().join(format!("sealed-{name}"));
        std::fs::remove_dir_all(&folder).unwrap_or_default();
        std::fs::create_dir_all(&folder).expect("a folder");
        if let Err(exposed) = takt_os::files::only_roots(&folder) {
            skipped(&exposed.to_string());
            return None;
        }
        let vault = Self(folder);
        if vault.openssl(&["genpkey", "-algorithm", "ed25519", "-out", "secret.pem"]).is_none() {
            skipped("openssl signs with Ed25519");
            return None;
        }
        let public = vault.openssl(&["pkey", "-in", "secret.pem", "-pubout", "-outform", "DER"])?;
        let key = [b"Ed", &KEY_ID[..], &public[public.len() - 32..]].concat();
        vault.write("policy.pub", &format!("untrusted comment: a key\n{}\n", vault.base64(&key)));
        Some(vault)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn write(&self, name: &str, contents: &str) {
        std::fs::write(self.path(name), contents).expect("written");
        std::fs::set_permissions(self.path(name), PermissionsExt::from_mode(0o644)).expect("ours");
    }

    /// What it says; none if it is missing or fails.
    fn openssl(&self, arguments: &[&str]) -> Option<Vec<u8>> {
        let output = Command::new("openssl").current_dir(&self.0).args(arguments).output().ok()?;
        output.status.success().then_some(output.stdout)
    }

    fn through(&self, bytes: &[u8], arguments: &[&str]) -> Vec<u8> {
        std::fs::write(self.path("in"), bytes).expect("written");
        self.openssl(&[arguments, &["-in", "in"]].concat()).expect("openssl does it")
    }

    fn base64(&self, bytes: &[u8]) -> String {
        text(&self.through(bytes, &["base64", "-A"])).trim().to_owned()
    }

    fn signed(&self, bytes: &[u8]) -> Vec<u8> {
        self.through(bytes, &["pkeyutl", "-sign", "-rawin", "-inkey", "secret.pem"])
    }

    /// The seal of a text as minisign writes it: a signature of its hash, and one of that and a comment.
    fn seal(&self, contents: &str) -> String {
        std::fs::write(self.path("text"), contents).expect("written");
        let hash = self.openssl(&["dgst", "-blake2b512", "-binary", "text"]).expect("a hash");
        let signature = self.signed(&hash);
        let outer = self.signed(&[&signature, TRUSTED.as_bytes()].concat());
        let inner = self.base64(&[b"ED", &KEY_ID[..], &signature].concat());
        format!("untrusted comment: x\n{inner}\ntrusted comment: {TRUSTED}\n{}\n", self.base64(&outer))
    }

    /// Writes a configuration with its seal.
    fn release(&self, config: &str) {
        self.write("takt.toml.minisig", &self.seal(config));
        self.write("takt.toml", config);
    }

    fn serve(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_takt"));
        command.current_dir(&self.0).args(["serve", "--socket", "s", "--log", "log"]);
        command.arg("--config").arg(self.path("takt.toml"));
        command.arg("--sealed-by").arg(self.path("policy.pub"));
        command
    }

    /// What a daemon says that does not start.
    fn refused(&self) -> String {
        let output: Output = self.serve().output().expect("takt starts");
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stdout));
        assert!(!self.path("s").exists(), "nothing listens");
        text(&output.stderr)
    }

    fn daemon(&self) -> Process {
        let daemon = Process(self.serve().stderr(Stdio::null()).spawn().expect("takt starts"));
        let socket = self.path("s");
        await_that("the daemon serves", || socket.exists());
        daemon
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    /// Joins as the listed app, once its contents are known.
    fn join(&self) -> Joined {
        let hello = Hello { name: "dial".to_owned(), ..Hello::default() };
        loop {
            match join(&self.path("s"), &hello, PATIENCE) {
                Ok(joined) => return joined,
                Err(NotScheduled::NotNow { again, .. }) => std::thread::sleep(again),
                Err(other) => panic!("{other}"),
            }
        }
    }
}

/// A daemon that ends with the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _gone = self.0.kill();
        let _gone = self.0.wait();
    }
}

/// A configuration in which this test is the safety-critical app, with that hash.
fn config(hash: &str) -> String {
    let this = std::env::current_exe().expect("this test");
    let path = this.display();
    format!(
        "[[domain]]\nname = 'cluster'\nuser = 0\nexecutable = '{path}'\nlevel = 'safety-critical'\n\
         [[app]]\nname = 'dial'\ndomain = 'cluster'\nexecutable = '{path}'\nsha256 = '{hash}'\nfps = 60\n\
         etpf_ms = 3.0\n"
    )
}

fn own_hash() -> String {
    let this: &Path = &std::env::current_exe().expect("this test");
    seal::sha256(&std::fs::read(this).expect("this test"))
}

#[test]
fn a_daemon_takes_a_sealed_configuration_and_keeps_it() {
    let Some(vault) = Vault::new("taken") else { return };
    let released = config(&own_hash());
    vault.release(&released);
    let _daemon = vault.daemon();
    let hash = seal::sha256(released.as_bytes());
    await_that("the log has the hash", || {
        vault
            .log()
            .lines()
            .any(|line| line.contains(" configured ") && line.contains(&hash) && line.contains("sealed=true"))
    });
    let dial = vault.join();
    assert!(dial.welcome.standing.protected, "{}", dial.welcome.admission);
    // Another file without a seal of its own is not taken.
    vault.write("takt.toml", &config(&"0".repeat(64)));
    await_that("the log says why", || {
        vault.log().lines().any(|line| {
            line.contains(" unreadable ") && line.contains("is no signature of the configuration by this key")
        })
    });
    drop(dial);
    assert!(vault.join().welcome.standing.protected, "the sealed one is in force");
    // One with a seal is.
    let next = format!("{released}# the next release\n");
    vault.release(&next);
    let hash = seal::sha256(next.as_bytes());
    await_that("the log has the next hash", || vault.log().contains(&hash));
}

#[test]
fn a_daemon_does_not_start_with_a_configuration_that_is_not_sealed() {
    let Some(vault) = Vault::new("refused") else { return };
    let released = config(&own_hash());
    vault.release(&released);
    // A byte of the text, of its seal, and another key.
    vault.write("takt.toml", &released.replace("3.0", "9.0"));
    let said = vault.refused();
    assert!(
        said.contains("takt.toml is not sealed")
            && said.contains("no signature of the configuration by this key"),
        "{said}"
    );
    let other = vault.seal("other");
    vault.release(&released);
    vault.write("takt.toml.minisig", &other);
    assert!(vault.refused().contains("no signature of the configuration by this key"));
    std::fs::remove_file(vault.path("takt.toml.minisig")).expect("it was there");
    let said = vault.refused();
    assert!(said.contains("sign the configuration with minisign -S -m FILE"), "{said}");
    // One that others can replace.
    vault.release(&released);
    std::fs::set_permissions(vault.path("takt.toml"), PermissionsExt::from_mode(0o666)).expect("ours");
    let said = vault.refused();
    assert!(said.contains("may be written by its group or by others"), "{said}");
    // One that says too little of a safety-critical app.
    let open: String =
        released.lines().filter(|line| !line.starts_with("sha256")).map(|line| format!("{line}\n")).collect();
    vault.release(&open);
    let said = vault.refused();
    assert!(said.contains("dial") && said.contains("add executable and sha256"), "{said}");
    // All of that is what was wrong.
    vault.release(&released);
    drop(vault.daemon());
}

#[test]
fn a_safety_critical_app_with_other_contents_has_no_rights() {
    let Some(vault) = Vault::new("contents") else { return };
    vault.release(&config(&"0".repeat(64)));
    let _daemon = vault.daemon();
    let dial = vault.join();
    let welcome = &dial.welcome;
    assert!(!welcome.standing.protected, "{}", welcome.admission);
    assert!(welcome.admission.contains("rule executable-hash"), "{}", welcome.admission);
    await_that("the log says so", || vault.log().contains("executable-hash"));
}
