//! [`follow`]: certificates and challenges of other gateways are used here, too.
//!
//! A task of the worker for as long as the same server is configured. Invariants: a certificate replaces
//! only an older one; a server that does not respond costs nothing but news.

use crate::commons::{Commons, LOOK_MS, News};
use crate::worker::Worker;
use outboard_reactor::sleep;
use std::collections::BTreeMap;
use std::rc::Rc;

/// More changes at once: all names are looked at.
const MAX_CHANGES: u64 = 500;
/// The pause after a failure.
const FAILED_MS: u64 = 3_000;

/// Uses what other gateways have stored, until the configuration has another server.
pub(crate) async fn follow(worker: Rc<Worker>, commons: Rc<Commons>) {
    let mut known = News::default();
    let mut is_failing = false;
    let mut is_first = true;
    while worker.is_shared_by(&commons) {
        match look(&worker, &commons, &known, is_first).await {
            Ok(news) => {
                (known, is_first) = (news, false);
                if std::mem::take(&mut is_failing) {
                    worker.info("certificates are shared again");
                }
                sleep(LOOK_MS).await;
            }
            Err(why) => {
                if !std::mem::replace(&mut is_failing, true) {
                    worker.warn(&format!("certificates are not shared: {why}"));
                }
                sleep(FAILED_MS).await;
            }
        }
    }
}

async fn look(
    worker: &Worker,
    commons: &Commons,
    known: &News,
    is_first: bool,
) -> Result<News, String> {
    let news = commons.news().await?;
    respond(worker, &known.challenges, &news.challenges);
    if is_first || news.version != known.version {
        let count = news.version.saturating_sub(known.version);
        let names = match is_first || count == 0 || count > MAX_CHANGES {
            true => worker.all_names(),
            false => commons.changes(count).await?,
        };
        for name in names {
            worker.adopt(commons, &name).await?;
        }
    }
    Ok(news)
}

/// Responds to new challenges, and not to those that are over.
fn respond(worker: &Worker, known: &BTreeMap<String, String>, present: &BTreeMap<String, String>) {
    let issued = worker.issued();
    for (field, response) in present.iter().filter(|(field, _)| !known.contains_key(*field)) {
        match field.split_once(' ') {
            Some(("http", token)) => issued.set_response(token, response),
            Some(("tls", name)) => {
                if let Err(why) = issued.set_challenge(name, response.as_bytes()) {
                    worker.warn(&why);
                }
            }
            _ => {}
        }
    }
    for field in known.keys().filter(|field| !present.contains_key(*field)) {
        match field.split_once(' ') {
            Some(("http", token)) => issued.remove_response(token),
            Some(("tls", name)) => issued.remove_challenge(name),
            _ => {}
        }
    }
}
