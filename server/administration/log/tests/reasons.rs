//! Tests that the table of reasons in `docs/reference/reasons.md` matches the code.
//!
//! `OUTBOARD_REGENERATE=1 cargo test -p outboard-log --test reasons` writes the table; without
//! it the test compares.

use outboard_log::Reason;
use std::fmt::Write;

const GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/reference/reasons.md");
const BEGIN: &str = "<!-- reasons -->\n";
const END: &str = "<!-- end reasons -->";

fn table() -> String {
    let mut out = String::from("| code | status | meaning |\n|---|---|---|\n");
    for reason in Reason::ALL {
        let status = match reason.status() {
            0 => "–".to_owned(),
            status => status.to_string(),
        };
        writeln!(out, "| `{}` | {status} | {} |", reason.code(), reason.text()).unwrap();
    }
    out
}

#[test]
fn the_reference_s_reasons_are_those_of_the_gateway() {
    let written = std::fs::read_to_string(GUIDE).unwrap();
    let (before, rest) = written.split_once(BEGIN).expect("the reference has a table of reasons");
    let (_, after) = rest.split_once(END).expect("its table has an end");
    let generated = format!("{before}{BEGIN}{}{END}{after}", table());
    if std::env::var_os("OUTBOARD_REGENERATE").is_some() {
        std::fs::write(GUIDE, &generated).unwrap();
    } else {
        assert!(
            written == generated,
            "the reasons in docs/reference/reasons.md are out of date; run \
             OUTBOARD_REGENERATE=1 cargo test -p outboard-log --test reasons"
        );
    }
}
