//! How good were the predictions? Compare files in, figures and plots out.
//!
//! A compare file has one row per command group: the predictions of each model and the measured time
//! (`docs/compare.md`). [`Comparison::parse`] reads it, [`figures`] condenses it, [`render`] draws
//! it: cumulative errors and residuals, as the papers show them.

mod figures;
mod page;
mod table;

pub use figures::{Figures, ModelFigures, figures};
pub use page::{plot, render};
pub use table::{Comparison, Model, ParseError, ROWS_MAX, Row};
