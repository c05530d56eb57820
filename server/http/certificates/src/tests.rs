//! Tests of the worker and its parts against an authority and a server for common state in the event loop of
//! the test.

mod authority;
mod commons;
mod errors;
mod files;
mod fixture;
mod names;
mod orders;
mod redis;
mod requests;
