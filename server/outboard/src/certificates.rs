//! `outboard certificates`: the certificates that a running server obtains itself.

use crate::admin;
use crate::admin::AdminArguments;
use crate::terminal::Terminal;
use outboard_admin_api::certificates::{Certificate, Certificates, Get};
use std::fmt::{self, Write as _};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

const DAY: u64 = 24 * 60 * 60;

pub(crate) fn run(arguments: &AdminArguments, terminal: &Terminal) -> ExitCode {
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    admin::run(arguments, terminal, &Get {}, |page, reply| write(page, reply, now_s))
}

fn write(page: &mut String, reply: &Certificates, now_s: u64) -> fmt::Result {
    if reply.certificates.is_empty() {
        return writeln!(
            page,
            "this server obtains no certificates: no listener has tls = \"auto\""
        );
    }
    reply.certificates.iter().try_for_each(|one| write_one(page, one, now_s))
}

fn write_one(page: &mut String, one: &Certificate, now_s: u64) -> fmt::Result {
    write!(page, "{}  {}", one.name, one.state)?;
    if let Some(not_after_s) = one.not_after_s {
        write!(page, ", {}", within("expires", not_after_s, now_s))?;
    }
    if let Some(next_s) = one.next_attempt_s {
        let what = if one.state == "valid" && one.last_error.is_none() {
            "renewed"
        } else {
            "next attempt"
        };
        write!(page, ", {}", within(what, next_s, now_s))?;
    }
    writeln!(page)?;
    if let Some(issuer) = &one.issuer {
        writeln!(page, "  issuer  {issuer}")?;
    }
    match &one.last_error {
        Some(error) => writeln!(page, "  error   {error}"),
        None => Ok(()),
    }
}

/// `expires in 59 days`.
fn within(what: &str, at_s: u64, now_s: u64) -> String {
    match at_s.checked_sub(now_s) {
        None | Some(0) => format!("{what} now"),
        Some(left_s) if left_s < 2 * 60 * 60 => format!("{what} in {} min", left_s.div_ceil(60)),
        Some(left_s) if left_s < 2 * DAY => format!("{what} in {} h", left_s / 3600),
        Some(left_s) => format!("{what} in {} days", left_s / DAY),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_shown_with_its_times_and_its_error() {
        let one = Certificate {
            name: "a.test".to_owned(),
            state: "valid".to_owned(),
            issuer: Some("CN=E7".to_owned()),
            not_after_s: Some(60 * DAY + 100),
            next_attempt_s: Some(31 * DAY + 100),
            last_error: None,
        };
        let shown = |one: &Certificate| {
            let mut page = String::new();
            write(&mut page, &Certificates { certificates: vec![one.clone()] }, 100).unwrap();
            page
        };
        let text = "a.test  valid, expires in 60 days, renewed in 31 days\n  issuer  CN=E7\n";
        assert_eq!(shown(&one), text);
        let missing = Certificate {
            name: "a.test".to_owned(),
            state: "missing".to_owned(),
            next_attempt_s: Some(160),
            last_error: Some("no route".to_owned()),
            ..Certificate::default()
        };
        assert_eq!(shown(&missing), "a.test  missing, next attempt in 1 min\n  error   no route\n");
    }
}
