//! Prefetches: upstream responses that are added to a script's request as parameters.
//!
//! Called before a script's request is submitted to the pool, so that no worker waits for them.
//! Invariants: all prefetches of a request run at the same time; the script runs even if one fails,
//! with an empty body, status 0 and the error.

use crate::app::App;
use crate::request::Request;
use crate::upstream_body::UpstreamBody;
use outboard_config::Prefetch;
use outboard_log::{Level, Reason};
use outboard_upstream::Error;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

/// The limit of all bodies together, which are in the request's frame, with headers of at most 32
/// KiB by default.
const MAX_BODY_BYTES: usize = 80 * 1024;

/// Parameters of a request: names and values.
pub(crate) type Params = Vec<(Vec<u8>, Vec<u8>)>;

/// Fetches the bodies that the app's configuration names for the current request.
///
/// # Errors
/// The client is gone.
pub(crate) async fn params(
    request: &Request<'_>,
    app: &Rc<App>,
    query: Option<&[u8]>,
) -> Result<Params, Reason> {
    if app.config.prefetch.is_empty() {
        return Ok(Params::new());
    }
    let path = app.below_prefix(request.path());
    let query = query.or(request.query()).unwrap_or_default();
    let configured = app.config.prefetch.iter().filter(|prefetch| prefetch.path.matches(path));
    let started: Vec<(&Prefetch, UpstreamBody)> = configured
        .map(|prefetch| {
            let (source, timeout_ms) = (&prefetch.source, prefetch.timeout_ms);
            let fetching =
                UpstreamBody::start(request, app, source, timeout_ms, usize::MAX, path, query);
            (prefetch, fetching)
        })
        .collect();
    let completed = poll_fn(|_| {
        if started.iter().all(|(_, fetching)| fetching.outcome().is_some()) {
            return Poll::Ready(true);
        }
        request.client.poll_gone().map(|()| false)
    });
    if !completed.await {
        return Err(Reason::ClientGone);
    }
    let mut room_bytes = MAX_BODY_BYTES;
    let mut params = Params::new();
    for (prefetch, fetching) in started {
        let mut body = Vec::new();
        fetching.take(&mut body);
        let outcome = fetching.outcome().unwrap_or(Ok(())).map_err(|error| describe(&error));
        let outcome = outcome.and_then(|()| {
            room_bytes = room_bytes.checked_sub(body.len()).ok_or_else(|| {
                "too_large: all prefetched bodies together exceed 80 KiB".to_owned()
            })?;
            Ok(fetching.status())
        });
        if let Err(error) = &outcome {
            let text = format!("prefetch {}: {error}", prefetch.source.url.as_str());
            app.log_text(Level::Warn, request.request_id, &text);
        }
        push(&mut params, &prefetch.param, body, outcome);
    }
    Ok(params)
}

fn describe(error: &Error) -> String {
    format!("{}: {}", error.kind.word(), error.message)
}

fn push(params: &mut Params, name: &str, body: Vec<u8>, outcome: Result<u16, String>) {
    let named = |suffix: &str| format!("{name}{suffix}").into_bytes();
    let status = *outcome.as_ref().unwrap_or(&0);
    params.push((named(""), if outcome.is_ok() { body } else { Vec::new() }));
    params.push((named("_STATUS"), status.to_string().into_bytes()));
    if let Err(error) = outcome {
        params.push((named("_ERROR"), error.into_bytes()));
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Site, Upstream, in_loop, ok};

    fn params(php: &outboard_php_pool::pool::testing::PhpRequest) -> Vec<(String, String)> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let params = php.view().params().map(|(name, value)| (text(name), text(value)));
        params.filter(|(name, _)| name.contains("WEATHER")).collect()
    }

    fn site(port: u16) -> Site {
        let keys = format!(
            "[[app.site.prefetch]]\npath = \"/*.php\"\nname = \"weather\"\n\
             fetch = \"http://127.0.0.1:{port}/w?q={{query:q}}\"\nmax_body = \"1 KiB\"\n"
        );
        Site::new(&[("a.php", "<?php")], &keys)
    }

    #[test]
    fn a_fetched_body_is_a_parameter_of_the_script() {
        in_loop(async {
            let upstream = Upstream::with_body("sunny");
            let site = site(upstream.port);
            site.with_php("GET", "/a.php?q=1", "", |php| {
                let params = params(php);
                let value = |end: &str| params.iter().find(|(name, _)| name.ends_with(end));
                assert_eq!(value("WEATHER").unwrap().1, "sunny");
                assert_eq!(value("WEATHER_STATUS").unwrap().1, "200");
                assert_eq!(value("WEATHER_ERROR"), None);
                php.respond(200, &[], "");
            })
            .await;
            assert!(upstream.last_request().starts_with("GET /w?q=1 "));
        });
    }

    #[test]
    fn a_failed_fetch_does_not_prevent_the_script() {
        in_loop(async {
            let large = Upstream::start(|_| ok("", &"x".repeat(5_000)));
            for port in [1, large.port] {
                let site = site(port);
                site.with_php("GET", "/a.php", "", |php| {
                    let params = params(php);
                    let value = |end: &str| params.iter().find(|(name, _)| name.ends_with(end));
                    assert_eq!(value("WEATHER").unwrap().1, "");
                    assert_eq!(value("WEATHER_STATUS").unwrap().1, "0");
                    assert!(value("WEATHER_ERROR").is_some());
                    php.respond(200, &[], "");
                })
                .await;
            }
        });
    }
}
