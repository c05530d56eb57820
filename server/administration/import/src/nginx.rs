//! Configurations of nginx: the parser, and the translator of `http` and `server` blocks.

mod access;
mod location;
mod parser;
mod server;
mod surroundings;
mod upstream;

pub(crate) use parser::parse;

use crate::directive::Directive;
use crate::draft::Draft;
use std::collections::BTreeMap;
use surroundings::Surroundings;

/// Fills the draft from the statements of the file: those of `nginx.conf`, or those of a site.
pub(crate) fn translate(statements: &[Directive], draft: &mut Draft) {
    let inner: Vec<Directive> = statements
        .iter()
        .flat_map(|one| match one.name.as_str() {
            "http" => one.children.clone(),
            _ => vec![one.clone()],
        })
        .collect();
    let (servers, general): (Vec<Directive>, Vec<Directive>) =
        inner.into_iter().partition(|one| one.name == "server");
    let upstreams: BTreeMap<&str, &Directive> = general
        .iter()
        .filter(|one| one.name == "upstream")
        .map(|one| (one.argument(0), one))
        .collect();
    let surroundings = Surroundings { general: &general, upstreams: &upstreams };
    for directive in &general {
        let is_used = server::is_inherited(&directive.name)
            || access::is_about_access(&directive.name)
            || directive.name == "upstream";
        if !is_used {
            server::omit_unless_quiet(directive, draft);
        }
    }
    servers.iter().for_each(|one| server::translate(one, surroundings, draft));
}
