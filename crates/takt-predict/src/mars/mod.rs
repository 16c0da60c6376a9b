//! Multivariate adaptive regression splines (Friedman 1991).
//!
//! A model is a sum of products of hinge functions `max(0, x-t)` and `max(0, t-x)`. The forward
//! pass adds, step by step, the pair of hinges that lowers the residual most, each possibly
//! multiplied with a term that is already there. The backward pass then removes terms one by one
//! and keeps the size with the smallest generalised cross-validation criterion (GCV).
//!
//! Takt uses such models for what a shader costs per vertex and per fragment: the cost is linear
//! over wide ranges, has few bends, and most features do not matter. Training is done once per
//! GPU; evaluation is part of every prediction and allocates nothing.
//!
//! Assumptions: rows are independent and equally trustworthy, features are numbers (a flag is 0 or
//! 1). Time of the forward pass: rows × features × (terms that may be parents) × terms.
//!
//! ```
//! use takt_predict::mars::{Options, Samples, Span, train};
//!
//! let features: Vec<f64> = (0..100).map(f64::from).collect();
//! let costs: Vec<f64> = features.iter().map(|x| 5.0 + 2.0 * (x - 30.0).max(0.0)).collect();
//! let options = Options { min_span: Span::Rows(1), ..Options::default() };
//! let trained = train(&Samples::new(1, &features, &costs)?, &options)?;
//! assert_eq!(trained.model.to_string(), "5\n+ 2 * h(x0-30)");
//! assert_eq!(trained.model.predict(&[40.0]).round(), 25.0);
//! # Ok::<(), takt_predict::mars::TrainError>(())
//! ```

mod backward;
mod data;
mod file;
mod forward;
mod linalg;
mod model;
mod options;
mod scan;
#[cfg(test)]
mod tests;
mod training;

pub use data::Samples;
pub(crate) use file::fnv_1a;
pub use file::{BYTES_MAX, FileError, decode, encode};
pub use forward::Stop;
pub use model::{Factor, HingeShape, MODEL_TERMS_MAX, Model, ModelError};
pub use options::{
    DEGREE_MAX, Fast, Guards, MAGNITUDE_MAX, Options, Parents, ROWS_MAX, Span, TERMS_MAX, TrainError,
    VARIABLES_MAX,
};
pub use training::{Importance, Size, Summary, Trained, train};
