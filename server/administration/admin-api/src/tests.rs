//! Tests of what the API promises to its clients: requests as they are sent, replies as JSON, and what the
//! schemas of all endpoints have in common.

mod opcache;
mod replies;
mod requests;
mod schemas;
