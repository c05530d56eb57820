//! Pages that reload themselves: the script in them, and the stream of news that it reads.
//!
//! Called by the turn for the two URLs, and by everything that answers with a page. Invariants: a
//! page is changed in development only, at its end and with its length told right; a stream ends
//! when the server drains.
//!
//! The script is a file of its own rather than lines in the page, so that a content security
//! policy with `script-src 'self'` lets it run.

use super::tree::Change;
use crate::answer::{Framing, Sent};
use crate::connection::Connection;
use crate::gateway::Gateway;
use crate::header_block::HeaderBlock;
use crate::turn::{Answered, Turn};
use outboard_http1::LAST_CHUNK;
use outboard_reactor::{TaskId, current_task, now_ms, wake, with_deadline};
use outboard_static_files::{Part, Plan};
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::Poll;

/// No file is served under a name with a leading dot, so no application has these.
const SCRIPT_PATH: &[u8] = b"/.outboard/live.js";
const NEWS_PATH: &[u8] = b"/.outboard/changes";
/// What a page ends with. Browsers take what comes behind `</html>` into the body (HTML,
/// 13.2.6.4.22).
const TAG: &[u8] = b"\n<script src=\"/.outboard/live.js\" async></script>\n";
/// A stream that is silent for so long is taken for dead by what is in between.
const SILENCE_MS: u64 = 15_000;

/// `AT` is where the page stands, so that news between its making and its listening is not lost.
const SCRIPT: &str = "\
(() => {
  if (window.outboardListens) return;
  window.outboardListens = true;
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

/// What has changed, for those who listen. Clones are the same.
#[derive(Debug, Clone)]
pub(crate) struct News(Rc<Told>);

#[derive(Debug)]
struct Told {
    /// Goes up with what is told, from a number that differs from start to start: a page of an
    /// earlier life of the server is behind.
    count: Cell<u64>,
    /// The last that was more than style.
    last_page: Cell<u64>,
    waiting: RefCell<Vec<TaskId>>,
}

impl News {
    /// Whose first number is after `first`.
    pub(crate) fn after_number(first: u64) -> Self {
        let (count, last_page) = (Cell::new(first), Cell::new(first));
        Self(Rc::new(Told { count, last_page, waiting: RefCell::default() }))
    }

    /// Tells all who listen.
    pub(crate) fn tell(&self, changes: &[Change]) {
        let count = self.0.count.get() + 1;
        self.0.count.set(count);
        if changes.iter().any(|change| *change != Change::Style) {
            self.0.last_page.set(count);
        }
        self.0.waiting.take().into_iter().for_each(wake);
    }

    /// The name of what was told after `seen`, which becomes the last.
    fn after(&self, seen: &mut u64) -> Option<&'static str> {
        if *seen == self.0.count.get() {
            return None;
        }
        let is_page = *seen > self.0.count.get() || *seen < self.0.last_page.get();
        *seen = self.0.count.get();
        Some(if is_page { "page" } else { "style" })
    }
}

/// Answers the script's URL and that of the news; `None` for any other.
pub(crate) async fn attempt(connection: &mut Connection, turn: &Turn) -> Option<Answered> {
    let development = connection.gateway.development().filter(|found| found.is_live())?;
    let buffers = connection.buffers();
    if buffers.path == SCRIPT_PATH {
        let text = SCRIPT.replace("AT", &development.news.0.count.get().to_string());
        return Some(script(connection, turn, text.as_bytes()).await);
    }
    if buffers.path != NEWS_PATH {
        return None;
    }
    let query = buffers.head.query(&buffers.input).unwrap_or_default();
    // A browser that reconnects says what it heard last.
    let last = buffers.head.header(&buffers.input, b"last-event-id");
    let since = last.or(query.strip_prefix(b"since=")).unwrap_or_default();
    let since = std::str::from_utf8(since).ok().and_then(|since| since.parse().ok());
    let since = since.unwrap_or_else(|| development.news.0.count.get());
    Some(stream(connection, turn, &development.news, since).await)
}

async fn script(connection: &mut Connection, turn: &Turn, text: &[u8]) -> Answered {
    let headers = headers("text/javascript; charset=utf-8");
    let sent = connection.respond(turn.asked, 200, &headers, text).await;
    Answered { sent, status: 200, body_bytes: text.len() as u64 }
}

fn headers(content_type: &str) -> HeaderBlock {
    let mut headers = HeaderBlock::default();
    let constant = "a constant header";
    headers.add(b"Content-Type", content_type.as_bytes()).expect(constant);
    headers.add(b"Cache-Control", b"no-store").expect(constant);
    headers
}

/// HTML, 9.2: an endless answer, an event at a time.
async fn stream(connection: &mut Connection, turn: &Turn, news: &News, mut seen: u64) -> Answered {
    let framing = turn.asked.framing(200, None);
    let facts = turn.asked.head(200, framing);
    connection.put_head(facts, &headers("text/event-stream").bytes);
    let (body_bytes, ended) = match framing {
        Framing::Bodyless(_) => (0, connection.flush(b"").await),
        _ => relay(connection, framing, news, &mut seen).await,
    };
    let sent = if ended { Sent::Whole { keep_alive: facts.keep_alive } } else { Sent::Broken };
    Answered { sent, status: 200, body_bytes }
}

/// Writes news as they come; how much, and whether the stream ended as it should.
async fn relay(
    connection: &mut Connection,
    framing: Framing,
    news: &News,
    seen: &mut u64,
) -> (u64, bool) {
    let mut body_bytes = 0;
    let mut event = "retry: 200\n\n".to_owned();
    loop {
        body_bytes += event.len() as u64;
        if !write(connection, framing, event.as_bytes()).await {
            return (body_bytes, false);
        }
        let next = next(connection, news, seen);
        event = match with_deadline(now_ms() + SILENCE_MS, next).await {
            Ok(Some(name)) => format!("event: {name}\nid: {seen}\ndata:\n\n"),
            Ok(None) => break,
            Err(_) => ":\n\n".to_owned(),
        };
    }
    let is_chunked = framing == Framing::Chunked;
    (body_bytes, !is_chunked || connection.write_plain(LAST_CHUNK).await)
}

async fn write(connection: &mut Connection, framing: Framing, event: &[u8]) -> bool {
    if framing == Framing::Chunked {
        return connection.flush_chunk(event).await;
    }
    let written = connection.flush(event).await;
    connection.buffers().output.clear();
    written
}

/// The next event; `None` when the server drains or the browser has gone.
async fn next(connection: &Connection, news: &News, seen: &mut u64) -> Option<&'static str> {
    std::future::poll_fn(|_| {
        if let Some(name) = news.after(seen) {
            return Poll::Ready(Some(name));
        }
        if connection.gateway.is_draining() {
            return Poll::Ready(None);
        }
        let task = current_task();
        let mut waiting = news.0.waiting.borrow_mut();
        if !waiting.contains(&task) {
            waiting.push(task);
        }
        connection.wire.poll_hangup().map(|()| None)
    })
    .await
}

/// What a page with these header lines gets at its end; nothing in production.
pub(crate) fn tag(gateway: &Gateway, headers: &HeaderBlock) -> &'static [u8] {
    if is_live(gateway) && is_plain_html(headers.lines()) { TAG } else { b"" }
}

fn is_live(gateway: &Gateway) -> bool {
    gateway.development().is_some_and(|development| development.is_live())
}

/// The same for a page that is a file, and sent whole.
pub(crate) fn extend(gateway: &Gateway, plan: &mut Plan) {
    let lines = plan.headers.iter().map(|(name, value)| (name.as_bytes(), &value[..]));
    if plan.status != 200 || !is_live(gateway) || !is_plain_html(lines) {
        return;
    }
    plan.content_length += TAG.len() as u64;
    if !plan.body.is_empty() {
        plan.body.push(Part::Bytes(TAG.to_vec()));
    }
}

/// A page with what it gets.
pub(crate) fn with_tag<'a>(
    gateway: &Gateway,
    headers: &HeaderBlock,
    body: &'a [u8],
) -> Cow<'a, [u8]> {
    match tag(gateway, headers) {
        b"" => Cow::Borrowed(body),
        tag => Cow::Owned([body, tag].concat()),
    }
}

fn is_plain_html<'a>(lines: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> bool {
    let (mut is_html, mut is_coded) = (false, false);
    for (name, value) in lines {
        is_coded |= name.eq_ignore_ascii_case(b"content-encoding");
        is_html |= name.eq_ignore_ascii_case(b"content-type")
            && value.get(..9).is_some_and(|kind| kind.eq_ignore_ascii_case(b"text/html"));
    }
    is_html && !is_coded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_is_told_once_of_all_that_it_missed() {
        let news = News::after_number(0);
        let mut seen = 0;
        assert_eq!(news.after(&mut seen), None);
        news.tell(&[Change::Style]);
        assert_eq!(news.after(&mut seen), Some("style"));
        assert_eq!(news.after(&mut seen), None);
        news.tell(&[Change::Code]);
        news.tell(&[Change::Style]);
        assert_eq!(news.after(&mut seen), Some("page"), "the style came with the page");
        assert_eq!(news.after(&mut seen), None);
    }

    #[test]
    fn a_page_of_an_earlier_life_is_behind() {
        let news = News::after_number(1_000);
        assert_eq!(news.after(&mut 7), Some("page"));
        assert_eq!(news.after(&mut 2_000), Some("page"), "or the clock was put back");
    }

    #[test]
    fn only_plain_html_is_a_page() {
        let block = |lines: &[(&str, &str)]| {
            let mut block = HeaderBlock::default();
            lines.iter().for_each(|(name, value)| {
                block.add(name.as_bytes(), value.as_bytes()).unwrap();
            });
            block
        };
        assert!(is_plain_html(block(&[("content-type", "Text/HTML; charset=utf-8")]).lines()));
        assert!(!is_plain_html(block(&[("Content-Type", "application/json")]).lines()));
        assert!(!is_plain_html(block(&[]).lines()));
        let coded = [("Content-Type", "text/html"), ("Content-Encoding", "gzip")];
        assert!(!is_plain_html(block(&coded).lines()));
    }
}
