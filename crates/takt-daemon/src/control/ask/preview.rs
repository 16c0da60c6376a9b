//! What an order would do to the contracts of all apps, before it is given.

use serde::Serialize;

/// What an order would do.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct PreviewAnswer {
    /// Why it would not be carried out, if so; then nothing would change.
    pub refused: Option<String>,
    /// The apps whose contract holds now and would not any more.
    pub loses: Vec<String>,
    /// The apps whose contract does not hold now and would.
    pub gains: Vec<String>,
    /// What else follows from it, in sentences.
    pub notes: Vec<String>,
    /// All apps, by falling importance as it is now.
    pub apps: Vec<AppPreview>,
}

/// An app before and after.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct AppPreview {
    /// Its slot.
    pub app: u32,
    /// Its name.
    pub name: String,
    /// As it is.
    pub before: ContractPreview,
    /// As it would be; none if it would not be scheduled.
    pub after: Option<ContractPreview>,
}

/// The contract of an app.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ContractPreview {
    /// Importance within the level of its domain.
    pub priority: u32,
    /// In a few words.
    pub contract: String,
    /// Whether it holds beside those of more important apps; none if there is none.
    pub covered: Option<bool>,
    /// Why it does not.
    pub why_not: Option<String>,
    /// Whether the deadlines are guaranteed; none of what has not happened yet.
    pub guaranteed: Option<bool>,
    /// Whether it is paused.
    pub paused: bool,
}
