//! Live reload: the script that pages load in development, and the event stream that it reads.
//!
//! Called by [`crate::dispatch`] for two URLs. Invariant: a stream ends when the server drains.
//!
//! The script is a separate file, so that a content security policy with `script-src 'self'` allows
//! it.

use crate::request::{Request, ResponseSummary, send};
use outboard_development::ChangeFeed;
use outboard_http_server::{BodyWriter, Client, Framing, HeaderBlock, ResponseWriter, Written};
use outboard_reactor::{now_ms, with_deadline};
use std::task::Poll;

/// No file is served under a name with a leading dot, so no application has these.
const SCRIPT_PATH: &[u8] = b"/.outboard/live.js";
const EVENTS_PATH: &[u8] = b"/.outboard/changes";
/// Proxies close a stream that is silent for longer.
const SILENCE_MS: u64 = 15_000;

/// `AT` is the number of the last change when the page was loaded, so that no later one is missed.
const SCRIPT: &str = "\
(() => {
  if (window.outboardLiveReload) return;
  window.outboardLiveReload = true;
  const source = new EventSource('/.outboard/changes?since=AT');
  source.addEventListener('page', () => location.reload());
  source.addEventListener('style', () => {
    for (const link of document.querySelectorAll('link[rel~=\"stylesheet\"]')) {
      const url = new URL(link.href);
      if (url.origin === location.origin) {
        url.searchParams.set('outboard', Date.now());
        link.href = url;
      }
    }
  });
  addEventListener('pagehide', () => source.close());
})();
";

/// Serves the script and the event stream; `None` for any other URL.
pub(crate) async fn try_handle(
    request: &Request<'_>,
    response: &mut ResponseWriter,
) -> Option<ResponseSummary> {
    let development = request.gateway.development().filter(|found| found.is_live())?;
    if request.path() == SCRIPT_PATH {
        let text = SCRIPT.replace("AT", &development.feed().number().to_string());
        return Some(script(response, text.as_bytes()).await);
    }
    if request.path() != EVENTS_PATH {
        return None;
    }
    let query = request.query().unwrap_or_default();
    // A browser that reconnects sends the last number it received.
    let last = request.header(b"last-event-id");
    let since = last.or(query.strip_prefix(b"since=")).unwrap_or_default();
    let since = std::str::from_utf8(since).ok().and_then(|since| since.parse().ok());
    let since = since.unwrap_or_else(|| development.feed().number());
    Some(stream(response, development.feed(), since).await)
}

async fn script(response: &mut ResponseWriter, text: &[u8]) -> ResponseSummary {
    send(response, 200, &headers("text/javascript; charset=utf-8"), text).await
}

fn headers(content_type: &str) -> HeaderBlock {
    HeaderBlock::constant(&[("Content-Type", content_type), ("Cache-Control", "no-store")])
}

/// An event stream (HTML, 9.2).
async fn stream(
    response: &mut ResponseWriter,
    feed: &ChangeFeed,
    mut seen: u64,
) -> ResponseSummary {
    let framing = response.request.framing(200, None);
    let facts = response.request.head(200, framing);
    response.put_head(facts, &headers("text/event-stream").bytes);
    let mut body = BodyWriter::new(framing);
    let written = match framing {
        Framing::Bodyless(_) => response.flush(b"").await,
        _ => relay(response, &mut body, feed, &mut seen).await,
    };
    let written = match written {
        true => {
            let account = response.client.context.memory.responses().clone();
            body.finish(response, b"", facts.keep_alive, &account).await
        }
        false => Written::Broken,
    };
    ResponseSummary { written, status: 200, body_bytes: body.written_bytes() }
}

/// Writes events as they come. False if the client is gone before the stream ends.
async fn relay(
    response: &mut ResponseWriter,
    body: &mut BodyWriter,
    feed: &ChangeFeed,
    seen: &mut u64,
) -> bool {
    let mut event = "retry: 200\n\n".to_owned();
    loop {
        if !body.write(response, event.as_bytes()).await {
            return false;
        }
        let next = next(&response.client, feed, seen);
        event = match with_deadline(now_ms() + SILENCE_MS, next).await {
            Ok(Some(name)) => format!("event: {name}\nid: {seen}\ndata:\n\n"),
            Ok(None) => return true,
            Err(_) => ":\n\n".to_owned(),
        };
    }
}

/// The next event; `None` if the server drains or the browser is gone.
async fn next(client: &Client, feed: &ChangeFeed, seen: &mut u64) -> Option<&'static str> {
    std::future::poll_fn(|_| {
        if let Some(name) = feed.next(seen) {
            return Poll::Ready(Some(name));
        }
        if client.context.is_draining() {
            return Poll::Ready(None);
        }
        client.transport.poll_hangup().map(|()| None)
    })
    .await
}

#[cfg(test)]
mod tests {
    use crate::testing::{Site, in_loop, request_text};
    use outboard_development::{Change, Development};
    use std::rc::Rc;

    fn site() -> (Site, Rc<Development>) {
        let text = "environment = \"development\"\n[app.site]\nroot = \"www\"\n[development]\nwatch = []\n";
        let site = Site::with_config(&[("a.html", "<p>")], text);
        let config = site.gateway.generation().config.development.clone().unwrap();
        let file = site.directory().join("outboard.toml");
        let (development, _) = Development::watch(&config, &file, None);
        site.gateway.set_development(Some(development.clone()));
        (site, development)
    }

    #[test]
    fn a_page_loads_the_script_of_the_last_change() {
        in_loop(async {
            let (site, development) = site();
            let page = site.get("/a.html").await;
            assert!(page.body.contains("<script src=\"/.outboard/live.js\""), "{}", page.body);
            assert_eq!(page.header("content-length"), Some(&page.body.len().to_string()[..]));
            let script = site.get("/.outboard/live.js").await;
            let number = development.feed().number();
            assert!(script.body.contains(&format!("since={number}'")), "{}", script.body);
            assert_eq!(script.header("cache-control"), Some("no-store"));
        });
    }

    #[test]
    fn changes_are_sent_as_events_until_the_server_drains() {
        in_loop(async {
            let (site, development) = site();
            let client = site.connect();
            client.send(request_text("GET", "/.outboard/changes", "", ""));
            let head = client.receive().await;
            assert!(head.contains("Content-Type: text/event-stream\r\n"), "{head}");
            assert!(head.contains("retry: 200\n\n"), "{head}");
            development.feed().publish(&[Change::Style]);
            assert!(client.receive().await.contains("event: style\n"));
            development.feed().publish(&[Change::Code]);
            assert!(client.receive().await.contains("event: page\n"));
            site.gateway.server.drain();
            development.feed().publish(&[Change::Page]);
            assert!(client.receive_to_end().await.ends_with("0\r\n\r\n"));
        });
    }

    #[test]
    fn a_missed_change_is_sent_at_once() {
        in_loop(async {
            let (site, development) = site();
            let seen = development.feed().number();
            development.feed().publish(&[Change::Style]);
            let client = site.connect();
            client.send(request_text(
                "GET",
                "/.outboard/changes",
                &format!("Last-Event-ID: {seen}\r\n"),
                "",
            ));
            assert!(client.receive().await.contains("event: style\n"));
        });
    }

    #[test]
    fn production_has_neither_script_nor_events() {
        in_loop(async {
            let site = Site::new(&[], "");
            assert_eq!(site.get("/.outboard/live.js").await.status, 404);
            assert_eq!(site.get("/.outboard/changes").await.status, 404);
        });
    }
}
