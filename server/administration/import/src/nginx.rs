//! Configurations of nginx: the parser, and the translator of `http` and `server` blocks.

mod access;
mod condition;
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
            || ["upstream", "log_format", "set_real_ip_from"].contains(&directive.name.as_str())
            || is_variable_of_condition(directive, &servers);
        if !is_used {
            server::omit_unless_quiet(directive, draft);
        }
    }
    let has_one = servers.len() == 1;
    let trusted =
        general.iter().chain(servers.iter().filter(|_| has_one).flat_map(|one| &one.children));
    server::trusted_proxies(trusted, draft);
    servers.iter().for_each(|one| server::translate(one, surroundings, draft));
}

/// Whether a `map` or `geo` is for an `if`, which is translated or listed.
fn is_variable_of_condition(one: &Directive, servers: &[Directive]) -> bool {
    let Some(variable) =
        one.arguments.last().filter(|_| matches!(one.name.as_str(), "map" | "geo"))
    else {
        return false;
    };
    servers.iter().any(|server| {
        let inner = server.all("if").chain(server.all("location").flat_map(|one| one.all("if")));
        inner.into_iter().any(|condition| {
            let first = condition.argument(0).trim_start_matches('(');
            first.trim_end_matches(')') == variable
        })
    })
}
