//! Directories: their index, the redirect to their slash, their listing.
//!
//! Called by the search for a route.

use super::{Cold, PathBytes, Route, Search, script};
use crate::app::App;
use outboard_http1::{encode_path, with_query};
use outboard_log::Reason;
use outboard_static_files::Lookup;

impl Search<'_> {
    pub(super) fn directory(&self, below: &[u8]) -> Result<Route, Cold> {
        Ok(match self.index(below)? {
            Some((path, _)) if self.denies(&path) => Route::Refuse(Reason::Denied, None),
            Some((path, found)) => self.found(&path, found),
            None => {
                self.front_controller(self.listing(below).unwrap_or_else(|| self.no_index(below)))
            }
        })
    }

    /// The first index in a directory, and its path. The directory ends with a slash.
    fn index(&self, directory: &[u8]) -> Result<Option<(PathBytes, Lookup)>, Cold> {
        for index in &self.app.index {
            let path = joined(directory, index.as_bytes());
            match self.lookup(&path)? {
                Lookup::NotFound | Lookup::Directory | Lookup::Error(_) => {}
                found => return Ok(Some((path, found))),
            }
        }
        Ok(None)
    }

    /// The listing of a directory without an index.
    fn listing(&self, below: &[u8]) -> Option<Route> {
        let mut listed = self.app.autoindex.iter();
        listed.any(|pattern| pattern.matches(below)).then(|| Route::Listing(below.into()))
    }

    fn no_index(&self, directory: &[u8]) -> Route {
        let directory = [self.app.root.as_os_str().as_encoded_bytes(), directory].concat();
        let directory = String::from_utf8_lossy(&directory);
        let names = self.app.index.join(" or ");
        Route::Refuse(Reason::NoIndex, Some(format!("there is no {names} in {directory}").into()))
    }

    /// An index that is a script goes to the worker script.
    pub(super) fn directory_in_worker_mode(&self, below: &[u8]) -> Result<Route, Cold> {
        let has_slash = below.ends_with(b"/");
        let found = if has_slash { self.index(below)? } else { self.index(&joined(below, b"/"))? };
        Ok(match found {
            Some((path, Lookup::File(_))) if self.denies(&path) => {
                Route::Refuse(Reason::Denied, None)
            }
            Some((_, Lookup::File(entry))) if has_slash => Route::File(entry),
            Some((_, Lookup::File(_))) => self.with_slash(below),
            _ => script(App::WORKER_NAME, b""),
        })
    }

    /// A redirect to a directory that was requested without its slash, unless it is denied.
    pub(super) fn with_slash(&self, directory: &[u8]) -> Route {
        if self.app.deny.denies(&[directory, b"/"].concat()) {
            return Route::Refuse(Reason::Denied, None);
        }
        let mut location = encode_path(self.full_path);
        location.push(b'/');
        Route::Redirect { status: 301, location: with_query(location, self.query) }
    }
}

fn joined(first: &[u8], second: &[u8]) -> PathBytes {
    let mut path = PathBytes::from_slice(first);
    path.extend_from_slice(second);
    path
}
