//! Whatever a configuration file contains, it is a configuration or a mistake with a reason.

use takt_daemon::control::config::Settings;

pub fn config(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    match Settings::parse(text) {
        Ok(settings) => {
            assert!(!settings.displays.is_empty(), "apps draw for the first display");
            assert!(takt_policies::NAMES.contains(&settings.policy.as_str()));
        }
        Err(mistake) => assert!(!mistake.to_string().is_empty(), "a reason"),
    }
}
