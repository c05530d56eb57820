//! A walk over an application's pages on both servers at once, comparing each.

use crate::Request;
use crate::html::links;
use crate::pair::Visit;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Where to begin and which links to follow.
pub struct Crawl<'a> {
    queue: VecDeque<String>,
    follow: Box<dyn Fn(&str) -> bool + 'a>,
    pages_max: usize,
}

/// What a crawl has seen.
#[derive(Debug, Default)]
pub struct Visited {
    /// How many pages answered with which status, by the reference's account.
    pub statuses: BTreeMap<u16, usize>,
    /// The pages, in order.
    pub pages: Vec<String>,
    differences: Vec<String>,
}

impl<'a> Crawl<'a> {
    /// Begins at these targets.
    pub fn from<'b>(starts: impl IntoIterator<Item = &'b str>) -> Crawl<'a> {
        Crawl {
            queue: starts.into_iter().map(str::to_owned).collect(),
            follow: Box::new(|_| true),
            pages_max: 100,
        }
    }

    /// Follows only links that this says yes to.
    pub fn follow(mut self, follow: impl Fn(&str) -> bool + 'a) -> Crawl<'a> {
        self.follow = Box::new(follow);
        self
    }

    /// Visits at most this many pages.
    pub fn at_most(mut self, pages: usize) -> Crawl<'a> {
        self.pages_max = pages;
        self
    }

    /// Walks; links are taken from the reference's pages.
    #[track_caller]
    pub fn walk(mut self, visit: &mut Visit<'_>) -> Visited {
        let mut seen: BTreeSet<String> = self.queue.iter().cloned().collect();
        let mut visited = Visited::default();
        while let Some(target) = self.queue.pop_front() {
            if visited.pages.len() == self.pages_max {
                break;
            }
            let translated = visit.translated(&target);
            let (response, difference) =
                visit.compare(&Request::get(&target), &Request::get(&translated));
            *visited.statuses.entry(response.status).or_default() += 1;
            if let Some(difference) = difference {
                visited.differences.push(format!("GET {target}\n  {difference}"));
            }
            let kind = response.header("content-type").unwrap_or_default();
            let mut found = Vec::new();
            if kind.starts_with("text/html") {
                found = links(&response.text(), &visit.reference.url(&target));
            }
            found.extend(visit.reference.redirect_of(&response));
            for link in found {
                if (self.follow)(&link) && seen.insert(link.clone()) {
                    self.queue.push_back(link);
                }
            }
            visited.pages.push(target);
        }
        visited
    }
}

impl Visited {
    /// Asserts that no page differed and that there was enough to see.
    #[track_caller]
    pub fn expect_same(self, pages_min: usize) -> Visited {
        let (differing, pages) = (self.differences.len(), self.pages.len());
        assert!(
            self.differences.is_empty(),
            "{differing} of {pages} pages differ:\n{}",
            self.differences.join("\n")
        );
        assert!(pages >= pages_min, "only {pages} pages: {:#?}", self.pages);
        self
    }
}
