//! The audit in the configuration.

use std::path::PathBuf;

use serde::Deserialize;
use takt_audit::Rule;
use takt_audit::rules::{DEFAULTS, RuleText};

use crate::control::mistake::{Mistake, mistake};
use crate::observe::audit::{AuditSettings, Limits};

/// Most rules, those included that Takt brings along.
const RULES_MAX: usize = 64;

/// An `[audit]` section.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct FileAudit {
    /// The folder of the files. Default: none, and no files.
    folder: Option<PathBuf>,
    /// Most mebibytes of a file. Default: 4.
    file_mib: Option<u64>,
    /// Most files of each of the two chains. Default: 16.
    files: Option<usize>,
    /// Pipe or socket of a DLT daemon. Default: none.
    dlt: Option<PathBuf>,
    /// Names of rules that Takt brings along and that are not wanted.
    without: Vec<String>,
    /// Rules; one with the name of a rule that Takt brings along takes its place.
    rule: Vec<RuleText>,
}

/// The rules that Takt brings along, as they are written.
#[derive(Deserialize)]
struct Defaults {
    rule: Vec<RuleText>,
}

impl FileAudit {
    pub(super) fn check(&self) -> Result<AuditSettings, Mistake> {
        for (key, path) in [("audit.folder", &self.folder), ("audit.dlt", &self.dlt)] {
            if let Some(path) = path.as_ref().filter(|path| !path.is_absolute()) {
                return Err(mistake(key, path.display(), "use a path that begins with /"));
            }
        }
        let (file_mib, files) = (self.file_mib.unwrap_or(4), self.files.unwrap_or(16));
        if !(1..=1024).contains(&file_mib) {
            return Err(mistake("audit.file_mib", file_mib, "use 1 to 1024"));
        }
        if !(2..=1024).contains(&files) {
            return Err(mistake("audit.files", files, "use 2 to 1024"));
        }
        let limits = Limits { file_bytes: file_mib << 20, files };
        Ok(AuditSettings { folder: self.folder.clone(), limits, dlt: self.dlt.clone(), rules: self.rules()? })
    }

    fn rules(&self) -> Result<Vec<Rule>, Mistake> {
        let defaults: Defaults =
            toml::from_str(DEFAULTS).map_err(|error| Mistake::Syntax(error.to_string()))?;
        let brought = |name: &String| defaults.rule.iter().any(|rule| rule.name == *name);
        if let Some(unknown) = self.without.iter().find(|name| !brought(name)) {
            let names: Vec<&str> = defaults.rule.iter().map(|rule| rule.name.as_str()).collect();
            return Err(mistake("audit.without", unknown, format!("use names of {}", names.join(", "))));
        }
        let replaced = |rule: &&RuleText| {
            !self.without.contains(&rule.name) && !self.rule.iter().any(|own| own.name == rule.name)
        };
        let mut rules = Vec::new();
        for rule in defaults.rule.iter().filter(replaced) {
            rules.push(rule.check().map_err(|wrong| mistake(wrong.key, wrong.value, wrong.remedy))?);
        }
        for (index, rule) in self.rule.iter().enumerate() {
            let within = |mistake: Mistake| mistake.within("audit.rule", index, &rule.name);
            if self.rule[..index].iter().any(|other| other.name == rule.name) {
                return Err(within(mistake("name", &rule.name, "name each rule once")));
            }
            let checked = rule.check().map_err(|wrong| mistake(wrong.key, wrong.value, wrong.remedy));
            rules.push(checked.map_err(within)?);
        }
        if rules.len() > RULES_MAX {
            return Err(mistake("audit.rule", rules.len(), format!("use {RULES_MAX} rules at most")));
        }
        Ok(rules)
    }
}

#[cfg(test)]
mod tests {
    use crate::control::config::Settings;

    #[test]
    fn mistakes_name_line_rule_key_and_remedy() {
        let problem = |text: &str| Settings::parse(text).expect_err("a mistake").to_string();
        assert_eq!(
            problem("[audit]\nfolder = 'log'"),
            "line 2: audit.folder = log: use a path that begins with /"
        );
        assert_eq!(problem("[audit]\nfile_mib = 0"), "line 2: audit.file_mib = 0: use 1 to 1024");
        assert_eq!(problem("[audit]\nfiles = 1"), "line 2: audit.files = 1: use 2 to 1024");
        let unknown = problem("[audit]\nwithout = ['x']");
        assert!(
            unknown.starts_with("line 2: audit.without = x: use names of guarantee-withdrawn, "),
            "{unknown}"
        );
        let rule = |keys: &str| format!("[[audit.rule]]\nname = 'a'\n{keys}");
        assert_eq!(
            problem(&rule("window_s = 0\nwhen = []")),
            "line 3: audit.rule \"a\": window_s = 0: use 0.001 to 86400"
        );
        let event = problem(&rule("window_s = 1\nwhen = [{ events = ['x'] }]"));
        assert!(event.starts_with("line 1: audit.rule \"a\": events = x: use one of started, "), "{event}");
        let twice = rule("window_s = 1\nwhen = [{ events = ['late'] }]");
        assert!(problem(&format!("{twice}\n{twice}")).ends_with("name = a: name each rule once"));
    }

    #[test]
    fn rules_take_the_place_of_those_of_the_same_name() {
        let rules = |text: &str| Settings::parse(text).expect("fine").audit.rules;
        let count = rules("").len();
        assert!(count > 8);
        assert_eq!(rules("[audit]\nwithout = ['churn']").len(), count - 1);
        let own = rules(
            "[[audit.rule]]\nname = 'churn'\nwindow_s = 1\nwhen = [{ events = ['joined'], count = 7 }]",
        );
        assert_eq!(own.len(), count);
        assert_eq!(own.iter().find(|rule| rule.name == "churn").expect("there").when[0].count, 7);
    }
}
