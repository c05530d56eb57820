//! How a [`Summary`](crate::Summary) is shown: one file a form, each a function that writes text.

mod ab;
pub mod chart;
mod html;
mod json;
mod series;
mod spectrum;
mod text;
mod units;
mod wrk;

pub use ab::{ab, ab_csv, ab_gnuplot};
pub use html::html;
pub use json::json;
pub use series::{csv, ndjson};
pub use spectrum::{Point, hgrm, spectrum};
pub use text::text;
pub use units::{count, time};
pub use wrk::wrk;

pub use outboard_profile::page::escape;
