//! What can be wrong with a shader.

/// Why a shader could not be analysed, and where.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}: {kind}")]
pub struct GlslError {
    /// Line of the source, counted from 1; 0 where no line is to blame.
    pub line: u32,
    /// What is wrong.
    pub kind: ErrorKind,
}

/// What is wrong with a shader.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A bound of [`limits`](super::limits) was reached; its name is given.
    #[error("limit reached: {0}")]
    Limit(&'static str),
    /// The text is not GLSL ES.
    #[error("syntax: {0}")]
    Syntax(String),
    /// A `#error` directive was active.
    #[error("#error {0}")]
    Directive(String),
    /// A name is used that was not declared.
    #[error("unknown name `{0}`")]
    UnknownName(String),
    /// Types do not fit.
    #[error("type: {0}")]
    Type(String),
    /// A function calls itself, directly or not.
    #[error("recursion through `{0}`")]
    Recursion(String),
    /// A language version that is not GLSL ES 1.00 or 3.00.
    #[error("version {0} is not supported")]
    Version(u32),
    /// There is no `main`.
    #[error("no function main")]
    NoMain,
}

impl GlslError {
    pub(super) fn new(line: u32, kind: ErrorKind) -> Self {
        Self { line, kind }
    }

    pub(super) fn syntax(line: u32, message: impl Into<String>) -> Self {
        Self::new(line, ErrorKind::Syntax(message.into()))
    }

    pub(super) fn types(line: u32, message: impl Into<String>) -> Self {
        Self::new(line, ErrorKind::Type(message.into()))
    }

    pub(super) fn limit(line: u32, name: &'static str) -> Self {
        Self::new(line, ErrorKind::Limit(name))
    }

    /// Whether a bound was reached, rather than the shader being wrong.
    #[must_use]
    pub fn is_limit(&self) -> bool {
        matches!(self.kind, ErrorKind::Limit(_))
    }
}

/// Shorthand of this module.
pub(super) type Result<T, E = GlslError> = std::result::Result<T, E>;
