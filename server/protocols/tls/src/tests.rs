//! Tests of handshakes and sessions with certificates of an authority of the tests.

mod authority;
mod clients;
mod files;
mod handshakes;
mod issued;
mod names;
mod sessions;
