//! Sealed configurations: a file that only root can replace, with a signature by those who release it.
//!
//! The seal is a signature of minisign (Ed25519) in a file beside the configuration, `takt.toml.minisig`.
//! The daemon knows the public key from a file that only root can replace, either. What is below, from the
//! kernel to the boot loader, is trusted: secure boot is out of scope.

use std::path::{Path, PathBuf};

use minisign_verify::{PublicKey, Signature};
use sha2::{Digest, Sha256};
use takt_os::files::{self, Exposed};

/// Longest key or signature.
const BYTES_MAX: u64 = 4096;

/// Where a configuration came from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Provenance {
    /// Its file.
    pub file: PathBuf,
    /// The hash of its text, in hexadecimal digits.
    pub sha256: String,
    /// Whether its signature was checked.
    pub sealed: bool,
}

/// Why a configuration is not sealed.
#[derive(Debug, thiserror::Error)]
pub enum Unsealed {
    /// Others than root can replace a file.
    #[error(transparent)]
    Exposed(#[from] Exposed),
    /// The key or the signature cannot be read.
    #[error("{path} cannot be read: {why}; sign the configuration with minisign -S -m FILE")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        why: String,
    },
    /// It is no key of minisign.
    #[error("{path} is no public key of minisign: {why}")]
    NoKey {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// It is no signature of this text by this key.
    #[error("{path} is no signature of the configuration by this key: {why}")]
    Forged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

/// The hash of a text or a file, in hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Bytes in hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Checks the seal of a configuration: that root alone can replace the file and the key, and that the
/// signature beside the file is one of its text by that key.
pub fn check(file: &Path, text: &str, key: &Path) -> Result<(), Unsealed> {
    files::only_roots(file)?;
    files::only_roots(key)?;
    let seal = super::socket_path::beside(file, ".minisig");
    let unreadable = |path: &Path, error: std::io::Error| Unsealed::Unreadable {
        path: path.to_owned(),
        why: error.to_string(),
    };
    let public = read(key).map_err(|error| unreadable(key, error))?;
    let signature = read(&seal).map_err(|error| unreadable(&seal, error))?;
    verify(text, &public, &signature).map_err(|mistake| match mistake {
        Wrong::Key(why) => Unsealed::NoKey { path: key.to_owned(), why },
        Wrong::Signature(why) => Unsealed::Forged { path: seal, why },
    })
}

/// What is wrong with a seal.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Wrong {
    Key(String),
    Signature(String),
}

fn verify(text: &str, key: &str, signature: &str) -> Result<(), Wrong> {
    let key = PublicKey::decode(key).map_err(|error| Wrong::Key(error.to_string()))?;
    let wrong = |error: minisign_verify::Error| Wrong::Signature(error.to_string());
    let signature = Signature::decode(signature).map_err(wrong)?;
    key.verify(text.as_bytes(), &signature, false).map_err(wrong)
}

fn read(path: &Path) -> std::io::Result<String> {
    use std::io::Read as _;
    let mut text = String::new();
    std::fs::File::open(path)?.take(BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Made by minisign 0.11: `minisign -G -W`, then `minisign -S -t "takt policy policy"`.
    const KEY: &str = "untrusted comment: minisign public key C68C68BD285D68A7\n\
        RWSnaF0ovWiMxi7cp825Tv1nQcVUpdJztSSDLCDbnQGTy+W9L4HKh5WB\n";
    const TEXT: &str = "effective = \"state:parked\"\n\n[[domain]]\nname = \"cluster\"\nuser = 0\n\
        level = \"safety-critical\"\n";
    const SIGNATURE: &str = "untrusted comment: signature from minisign secret key\n\
        RUSnaF0ovWiMxo7z9JUPBi/3NUP7Aurs07irtGYiFBCcVp+8HXA/219/Z2DxQLnBUXVAyQA14iOZMwqrxduWxoGnAiOJA64InQs=\n\
        trusted comment: takt policy policy\nlsMd1sy90D1WeYlcMReOtEhEdwBG2AT8i3oeNCwL6VLPfdtJVhqQ24ZqiZaQM5AE/AjP5etHZ8qXNinyDTqIAQ==\n";

    #[test]
    fn a_signature_is_of_one_text_by_one_key() {
        assert_eq!(verify(TEXT, KEY, SIGNATURE), Ok(()));
        let changed = TEXT.replace("user = 0", "user = 1");
        assert!(matches!(verify(&changed, KEY, SIGNATURE), Err(Wrong::Signature(_))));
        let retold = SIGNATURE.replace("takt policy policy", "takt policy other");
        assert!(matches!(verify(TEXT, KEY, &retold), Err(Wrong::Signature(_))), "its comment is signed, too");
        let other = KEY.replace("RWSnaF0o", "RWSnaF0p");
        assert!(matches!(verify(TEXT, &other, SIGNATURE), Err(Wrong::Signature(_))), "another key");
        assert!(matches!(verify(TEXT, "nonsense", SIGNATURE), Err(Wrong::Key(_))));
        assert!(matches!(verify(TEXT, KEY, ""), Err(Wrong::Signature(_))));
    }

    #[test]
    fn files_that_others_can_replace_are_no_policies() {
        let path = std::env::temp_dir().join(format!("takt-seal-{}", std::process::id()));
        std::fs::write(&path, TEXT).expect("written");
        assert!(matches!(check(&path, TEXT, &path), Err(Unsealed::Exposed(_))));
        std::fs::remove_file(&path).expect("removed");
    }

    /// A folder that only root can write to, where this test may make one.
    fn roots_folder() -> Option<PathBuf> {
        let folder = Path::new("/run").join(format!("takt-seal-{}", std::process::id()));
        std::fs::create_dir(&folder).ok()?;
        files::only_roots(&folder).ok().map(|_| folder)
    }

    #[test]
    #[expect(clippy::print_stderr, reason = "says what was skipped")]
    fn roots_file_with_its_signature_is_sealed() {
        let Some(folder) = roots_folder() else {
            eprintln!("SKIPPED: only root has a folder of its own in /run");
            return;
        };
        let (file, key) = (folder.join("takt.toml"), folder.join("policy.pub"));
        let write = |path: &Path, text: &str| std::fs::write(path, text).expect("written");
        write(&file, TEXT);
        write(&key, KEY);
        let missing = check(&file, TEXT, &key).expect_err("no signature").to_string();
        assert!(missing.contains("takt.toml.minisig cannot be read"), "{missing}");
        write(&folder.join("takt.toml.minisig"), SIGNATURE);
        check(&file, TEXT, &key).expect("sealed");
        assert!(matches!(check(&file, "mpcg = 3", &key), Err(Unsealed::Forged { .. })));
        let open: std::fs::Permissions = std::os::unix::fs::PermissionsExt::from_mode(0o666);
        std::fs::set_permissions(&file, open).expect("its own");
        assert!(matches!(check(&file, TEXT, &key), Err(Unsealed::Exposed(Exposed::Writable(_)))));
        std::fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn hashes_are_those_of_other_tools() {
        // As sha256sum prints it.
        assert_eq!(sha256(b""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }
}
