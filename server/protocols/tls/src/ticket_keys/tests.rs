//! Lives of keys and tickets, at times that the tests choose.

use super::*;
use std::path::PathBuf;

const START_S: u64 = 1_800_000_000;

fn tickets() -> Tickets {
    Tickets::new(START_S).unwrap()
}

#[test]
fn a_ticket_is_accepted_for_its_lifetime_and_not_longer() {
    let tickets = tickets();
    for issued_s in [START_S, START_S + LIFETIME_S - 1, START_S + LIFETIME_S] {
        let ticket = tickets.encrypt_at(issued_s, b"state").unwrap();
        let last_s = issued_s + LIFETIME_S - 1;
        assert_eq!(tickets.decrypt_at(issued_s, &ticket).as_deref(), Some(&b"state"[..]));
        assert_eq!(tickets.decrypt_at(last_s, &ticket).as_deref(), Some(&b"state"[..]));
        assert_eq!(tickets.decrypt_at(last_s + 1, &ticket), None);
    }
}

#[test]
fn keys_are_replaced_and_forgotten() {
    let tickets = tickets();
    let name = |ticket: &[u8]| ticket[..NAME_BYTES].to_vec();
    let at = |now_s| name(&tickets.encrypt_at(now_s, b"").unwrap());
    let first = at(START_S);
    assert_eq!(at(START_S + LIFETIME_S - 1), first);
    let second = at(START_S + LIFETIME_S);
    assert_ne!(second, first);
    assert!(tickets.0.read().unwrap().previous.as_ref().is_some_and(|key| key.name[..] == first));
    // Nobody has come for a long time: no ticket of the old key is valid.
    assert_ne!(at(START_S + 10 * LIFETIME_S), second);
    assert!(tickets.0.read().unwrap().previous.is_none());
}

#[test]
fn a_clock_that_was_set_back_invalidates_nothing() {
    let tickets = tickets();
    let ticket = tickets.encrypt_at(START_S, b"state").unwrap();
    assert!(tickets.decrypt_at(START_S - 1_000_000, &ticket).is_some());
}

#[test]
fn altered_and_foreign_tickets_are_refused() {
    let tickets = tickets();
    let ticket = tickets.encrypt_at(START_S, b"state").unwrap();
    for at in 0..ticket.len() {
        let mut altered = ticket.clone();
        altered[at] ^= 1;
        assert_eq!(tickets.decrypt_at(START_S, &altered), None, "byte {at}");
        assert_eq!(tickets.decrypt_at(START_S, &ticket[..at]), None, "{at} bytes");
    }
    assert_eq!(Tickets::new(START_S).unwrap().decrypt_at(START_S, &ticket), None);
}

#[test]
fn a_very_long_state_has_no_ticket() {
    assert!(tickets().encrypt_at(START_S, &vec![0; MAX_STATE_BYTES]).is_some());
    assert!(tickets().encrypt_at(START_S, &vec![0; MAX_STATE_BYTES + 1]).is_none());
}

#[test]
fn equal_settings_have_the_same_keys_while_they_are_used() {
    let keys = TicketKeys::default();
    let plain = ServerOptions::default();
    let required = ServerOptions {
        clients: Some(crate::options::ClientAuthorities {
            authorities: PathBuf::from("/etc/ca.pem"),
            revoked: None,
            are_required: true,
        }),
        ..ServerOptions::default()
    };
    let first = keys.of(&plain).unwrap();
    assert!(Arc::ptr_eq(&first, &keys.of(&plain).unwrap()));
    let other = keys.of(&required).unwrap();
    let ticket = first.encrypt(b"state").unwrap();
    assert_eq!(other.decrypt(&ticket), None);
    drop((first, other));
    // A failed reload does not keep what it has made.
    assert_eq!(keys.of(&plain).unwrap().decrypt(&ticket), None);
    assert_eq!(keys.keys.0.lock().unwrap().len(), 1);
}
