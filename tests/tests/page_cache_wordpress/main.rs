//! WordPress behind the page cache: nobody gets what is another's, and what is published is there.

#![forbid(unsafe_code)]

mod blog;
mod plugin;
mod unchanged;
