//! One attempt for a name: at one authority after another, until one of them has issued a certificate.
//!
//! Run by the worker as a task. Invariants: only one process attempts a name at a time; an attempt that
//! another process has made unnecessary does nothing; a failure never removes a certificate.

use crate::acme::Failure;
use crate::authority::Account;
use crate::commons::Commons;
use crate::local_authority::LocalAuthority;
use crate::name::Name;
use crate::ordering;
use crate::plan::Step;
use crate::worker::{Worker, authorities, now_s, usable_s};
use outboard_config::Authority;
use outboard_tls::Credential;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// The pause while another process has the name.
const OTHER_PAUSE_S: u64 = 3;
/// What authorities of the local kind are called in records.
pub(crate) const LOCAL: &str = "local";

/// The pause while the server of the gateways' common state does not respond.
const NOT_SHARED_PAUSE_S: u64 = 30;

/// Attempts to obtain a certificate for a name that is due.
pub(crate) async fn attempt(worker: &Worker, name: &Name) {
    let outcome = match worker.commons() {
        None => try_all(worker, name).await,
        Some(commons) => match take_turn(worker, &commons, name).await {
            Ok(false) => {
                name.other_until_s.set(now_s() + OTHER_PAUSE_S);
                return;
            }
            Err(why) => {
                // Without the lock, each gateway would order.
                worker.warn(&format!("certificate for {}: {why}", name.text));
                name.other_until_s.set(now_s() + NOT_SHARED_PAUSE_S);
                return;
            }
            Ok(true) => {
                let outcome = try_all(worker, name).await;
                end_turn(worker, &commons, name).await;
                outcome
            }
        },
    };
    if let Err(why) = outcome {
        let text = format!("certificate for {}: {why}; trying again later", name.text);
        worker.error(&text);
        let now_s = now_s();
        if let Err(why) = name.change(&worker.storage, |record| record.failed(now_s, why)) {
            worker.error(&why);
        }
    }
}

/// Takes the lock that gateways share, and what another one has stored meanwhile.
async fn take_turn(worker: &Worker, commons: &Commons, name: &Name) -> Result<bool, String> {
    if !commons.lock(&name.text).await? {
        return Ok(false);
    }
    worker.adopt(commons, &name.text).await?;
    Ok(true)
}

async fn end_turn(worker: &Worker, commons: &Commons, name: &Name) {
    let outcome = async {
        let record = name.record.borrow().clone();
        commons.set_record(&name.text, &record).await?;
        commons.unlock(&name.text).await
    };
    if let Err(why) = outcome.await {
        worker.warn(&format!("certificate for {}: {why}", name.text));
    }
}

/// # Errors
/// Why no authority has issued a certificate.
async fn try_all(worker: &Worker, name: &Name) -> Result<(), String> {
    let config = worker.config();
    let Some(_lock) = worker.storage.lock(&name.text)? else {
        name.other_until_s.set(now_s() + OTHER_PAUSE_S);
        return Ok(());
    };
    // The process that had the lock before may have obtained the certificate.
    name.refresh(&worker.storage)?;
    if worker.next_step(name, now_s()) != Step::Obtain {
        worker.use_certificate(name);
        return Ok(());
    }
    // A name that clients have requested is approved again before it is renewed.
    worker.approve(&name.text).await?;
    let mut errors = Vec::new();
    for authority in authorities(&config, name) {
        let failure = match &authority {
            Authority::Local => match issue_locally(worker, name) {
                Ok(credential) => {
                    succeed(worker, name, credential).await;
                    return Ok(());
                }
                Err(why) => Failure::Own(why),
            },
            Authority::Acme(url) => {
                let account = worker.account(url)?;
                if usable_s(worker, name, &account) > now_s() {
                    continue;
                }
                match ordering::obtain(worker, &config, name, &account).await {
                    Ok(credential) => {
                        account.change(&worker.storage, |record| record.responded())?;
                        succeed(worker, name, credential).await;
                        return Ok(());
                    }
                    Err(failure) => {
                        note(worker, name, &account, &failure)?;
                        failure
                    }
                }
            }
        };
        worker.warn(&format!("certificate for {}: {}: {failure}", name.text, title(&authority)));
        errors.push(format!("{}: {failure}", title(&authority)));
    }
    // Without an error, no authority was usable after all.
    if errors.is_empty() { Ok(()) } else { Err(errors.join("; ")) }
}

/// Records what a failure means for the authority and for the name.
fn note(worker: &Worker, name: &Name, account: &Account, failure: &Failure) -> Result<(), String> {
    let (now_s, storage) = (now_s(), &worker.storage);
    if let Some(pause_s) = failure.pause_s() {
        account.change(storage, |record| record.pause(now_s, pause_s))?;
        name.change(storage, |record| record.pause(now_s, &account.url, pause_s))?;
    } else if failure.is_of_authority() {
        account.change(storage, |record| record.failed(now_s))?;
    }
    Ok(())
}

fn issue_locally(worker: &Worker, name: &Name) -> Result<Arc<Credential>, String> {
    let pem = LocalAuthority::of(&worker.storage)?.issue(&name.text)?;
    let credential = Credential::from_pem(pem.as_bytes())?;
    worker.storage.set_certificate(&name.text, &pem)?;
    name.change(&worker.storage, |record| record.issued(LOCAL))?;
    Ok(Arc::new(credential))
}

async fn succeed(worker: &Worker, name: &Name, credential: Arc<Credential>) {
    let facts = credential.facts().clone();
    name.set_credential(credential);
    worker.use_certificate(name);
    if let Some(commons) = worker.commons()
        && let Err(why) = share(worker, &commons, name).await
    {
        worker.warn(&format!("certificate for {}: not shared: {why}", name.text));
    }
    let until = SystemTime::UNIX_EPOCH + Duration::from_secs(facts.not_after_s);
    worker.info(&format!(
        "certificate for {}: issued by {}, valid until {}",
        name.text,
        facts.issuer,
        httpdate::fmt_http_date(until)
    ));
}

async fn share(worker: &Worker, commons: &Commons, name: &Name) -> Result<(), String> {
    let Some(pem) = worker.storage.certificate(&name.text)? else { return Ok(()) };
    let record = name.record.borrow().clone();
    commons.set_record(&name.text, &record).await?;
    commons.set_certificate(&name.text, &pem).await
}

fn title(authority: &Authority) -> &str {
    match authority {
        Authority::Local => "the local authority",
        Authority::Acme(url) => url,
    }
}
