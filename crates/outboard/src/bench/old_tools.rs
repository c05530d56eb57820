//! The flags of ab, wrk, wrk2 and webbench, and the plans that they mean.
//!
//! The reports have the old layouts. What the old tools do not say is said here on standard error:
//! why a result should not be believed; the exit code says it too.

use super::old_flags::{OldFlags, Spelling};
use super::{INVALID, Stop, outputs};
use crate::terminal::show;
use outboard_load::report::{self, Latencies};
use outboard_load::{
    Arrival, Load, Plan, Rate, Request, Run, Step, Summary, Target, Template, parse_duration,
};
use std::path::Path;
use std::time::Duration;

/// What the tools without a bound of time are given.
const NO_END: Duration = Duration::from_secs(24 * 3600);

const USAGE: &str = "The flags are those of the old tool, and the report has its layout:

  outboard bench ab [-n REQUESTS] [-c CONCURRENCY] [-t SECONDS] [-k] [-H HEADER] [-C COOKIE]
                    [-A USER:PASSWORD] [-p|-u BODY_FILE] [-T TYPE] [-m METHOD] [-i] [-l]
                    [-s TIMEOUT] [-e CSV_FILE] [-g GNUPLOT_FILE] URL
  outboard bench wrk [-c CONNECTIONS] [-d DURATION] [-t THREADS] [-H HEADER] [--latency]
                     [--timeout TIME] URL
  outboard bench wrk2 -R RATE [-c CONNECTIONS] [-d DURATION] [-t THREADS] [-H HEADER] [--latency]
                      [--u_latency] [--timeout TIME] URL
  outboard bench webbench [-c CLIENTS] [-t SECONDS] [-r] [--get|--head|--options|--trace] URL
";

/// Whether only help was asked for, which is given.
fn helps(words: &[String]) -> bool {
    let is_asked = words.is_empty() || words.iter().any(|word| word == "--help" || word == "-h");
    if is_asked {
        show(USAGE);
    }
    is_asked
}

const AB: Spelling = Spelling { short: "n:c:t:s:kip:u:T:m:H:C:A:e:g:v:qdSrlV", long: &[] };

pub(super) fn ab(words: &[String]) -> Result<u8, Stop> {
    if helps(words) {
        return Ok(0);
    }
    let flags = OldFlags::read(&AB, words)?;
    let mut plan = plan(flags.url()?)?;
    plan.connections = flags.parsed('c', number)?.unwrap_or(1);
    plan.duration = flags.parsed('t', seconds)?.unwrap_or(NO_END);
    // Without a number, -t alone means 50,000 to ab, and nothing at all means one.
    let requests = if flags.has('t') { 50_000 } else { 1 };
    plan.requests = Some(flags.parsed('n', number)?.unwrap_or(requests));
    plan.timeout = flags.parsed('s', seconds)?.unwrap_or(Duration::from_secs(30));
    plan.keep_alive = flags.has('k');
    plan.first_byte = true;
    if (plan.connections as u64) > plan.requests.unwrap_or_default() {
        return Err(Stop::mistake("-c: more connections than requests"));
    }
    let step = only_step(&mut plan);
    ab_request(&flags, &mut step.request)?;
    let mut first = plan.clone();
    (first.connections, first.requests) = (1, Some(1));
    let first = Run::start(first)?.finish()?.first.unwrap_or_default();
    let step = only_step(&mut plan);
    step.expect.status = Some(first.status);
    if !flags.has('l') {
        step.expect.length_bytes = Some(first.body_bytes);
    }
    let target = plan.target.clone();
    let summary = Run::start(plan)?.finish()?;
    show(&report::ab(&summary, &target));
    for (flag, text) in [('e', report::ab_csv as fn(&Summary) -> String), ('g', report::ab_gnuplot)]
    {
        if let Some(path) = flags.value(flag) {
            outputs::write(Path::new(path), &text(&summary))?;
        }
    }
    Ok(doubts(&summary))
}

fn ab_request(flags: &OldFlags, request: &mut Request) -> Result<(), Stop> {
    let body = [('p', "POST"), ('u', "PUT")].into_iter().find(|(flag, _)| flags.has(*flag));
    if let Some((flag, method)) = body {
        let path = flags.value(flag).unwrap_or_default();
        let bytes =
            std::fs::read(path).map_err(|error| Stop::mistake(format!("{path}: {error}")))?;
        request.body = Template::literal(bytes);
        method.clone_into(&mut request.method);
        let kind = flags.value('T').unwrap_or("text/plain");
        header(request, "Content-Type", kind);
    }
    if flags.has('i') {
        "HEAD".clone_into(&mut request.method);
    }
    if let Some(method) = flags.value('m') {
        method.clone_into(&mut request.method);
    }
    for cookie in flags.all('C') {
        header(request, "Cookie", cookie);
    }
    if let Some(account) = flags.value('A') {
        header(request, "Authorization", &format!("Basic {}", base64(account.as_bytes())));
    }
    headers(flags, request)
}

const WRK: Spelling = Spelling {
    short: "c:d:t:s:H:LUT:R:vB",
    long: &[
        ("connections", 'c'),
        ("duration", 'd'),
        ("threads", 't'),
        ("script", 's'),
        ("header", 'H'),
        ("latency", 'L'),
        ("u_latency", 'U'),
        ("timeout", 'T'),
        ("rate", 'R'),
        ("version", 'v'),
    ],
};

/// wrk, or wrk2, which needs a rate and prints spectra.
pub(super) fn wrk(words: &[String], is_wrk2: bool) -> Result<u8, Stop> {
    if helps(words) {
        return Ok(0);
    }
    let flags = OldFlags::read(&WRK, words)?;
    if flags.has('s') {
        return Err(Stop::mistake(
            "Lua scripts are not run here; see --scenario of outboard bench",
        ));
    }
    let mut plan = plan(flags.url()?)?;
    plan.connections = flags.parsed('c', metric)?.unwrap_or(10.0) as usize;
    plan.threads = flags.parsed('t', metric)?.unwrap_or(2.0) as usize;
    plan.duration =
        flags.parsed('d', |text| parse_duration(text).ok())?.unwrap_or(Duration::from_secs(10));
    plan.timeout =
        flags.parsed('T', |text| parse_duration(text).ok())?.unwrap_or(Duration::from_secs(2));
    if is_wrk2 {
        let rate =
            flags.parsed('R', metric)?.ok_or_else(|| Stop::mistake("wrk2 needs a rate: -R"))?;
        let rate = Rate::Fixed(rate);
        plan.load = Load::Open { rate, arrival: Arrival::Even, deadline: None };
    } else if flags.has('R') {
        return Err(Stop::mistake("wrk has no rate; wrk2 has"));
    }
    headers(&flags, &mut only_step(&mut plan).request)?;
    let summary = Run::start(plan)?.finish()?;
    let latencies = match (is_wrk2, flags.has('L'), flags.has('U')) {
        (true, _, true) => Latencies::BothSpectra,
        (true, true, false) => Latencies::Spectrum,
        (false, true, _) => Latencies::Distribution,
        _ => Latencies::Brief,
    };
    show(&report::wrk(&summary, latencies));
    Ok(doubts(&summary))
}

const WEBBENCH: Spelling = Spelling {
    short: "t:c:fr912p:GHOTV",
    long: &[
        ("time", 't'),
        ("clients", 'c'),
        ("force", 'f'),
        ("reload", 'r'),
        ("http09", '9'),
        ("http10", '1'),
        ("http11", '2'),
        ("proxy", 'p'),
        ("get", 'G'),
        ("head", 'H'),
        ("options", 'O'),
        ("trace", 'T'),
        ("version", 'V'),
    ],
};

pub(super) fn webbench(words: &[String]) -> Result<u8, Stop> {
    if helps(words) {
        return Ok(0);
    }
    let flags = OldFlags::read(&WEBBENCH, words)?;
    if flags.has('p') || flags.has('9') {
        return Err(Stop::mistake("neither proxies nor HTTP/0.9 are spoken here"));
    }
    let mut plan = plan(flags.url()?)?;
    plan.connections = flags.parsed('c', number)?.unwrap_or(1);
    plan.duration = flags.parsed('t', seconds)?.unwrap_or(Duration::from_secs(30));
    plan.keep_alive = false;
    let methods = [('H', "HEAD"), ('O', "OPTIONS"), ('T', "TRACE")];
    let method = methods.into_iter().find(|(flag, _)| flags.has(*flag));
    let method = method.map_or("GET", |(_, method)| method);
    let request = &mut only_step(&mut plan).request;
    method.clone_into(&mut request.method);
    if flags.has('r') {
        header(request, "Pragma", "no-cache");
    }
    let summary = Run::start(plan)?.finish()?;
    show(&report::webbench(&summary, method));
    Ok(doubts(&summary))
}

fn plan(url: &str) -> Result<Plan, Stop> {
    let url = if url.contains(':') { url.to_owned() } else { format!("http://{url}") };
    let target = Target::parse(&url).map_err(Stop::mistake)?;
    // The old tools check no certificates.
    Ok(Plan { verify_tls: false, ..Plan::new(target) })
}

/// The step of a plan of one request.
fn only_step(plan: &mut Plan) -> &mut Step {
    let script = plan.scripts.first_mut().expect("a new plan has one script");
    script.steps.first_mut().expect("a new plan has one step")
}

fn headers(flags: &OldFlags, request: &mut Request) -> Result<(), Stop> {
    for line in flags.all('H') {
        let (name, value) =
            line.split_once(':').ok_or_else(|| Stop::mistake(format!("-H {line}: no colon")))?;
        header(request, name.trim(), value.trim());
    }
    Ok(())
}

fn header(request: &mut Request, name: &str, value: &str) {
    request.headers.push((name.to_owned(), Template::literal(value)));
}

/// Says what the old layouts have no place for.
fn doubts(summary: &Summary) -> u8 {
    let doubts = summary.doubts();
    doubts.iter().for_each(|doubt| eprintln!("not to be believed: {doubt}"));
    if doubts.is_empty() { 0 } else { INVALID }
}

fn number<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}

fn seconds(text: &str) -> Option<Duration> {
    let seconds = text.parse::<u64>().ok().filter(|&seconds| seconds > 0);
    seconds.map(Duration::from_secs)
}

/// wrk's numbers: `10`, `2k`, `1.5M`.
fn metric(text: &str) -> Option<f64> {
    let at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let factor = match text[at..].to_ascii_lowercase().as_str() {
        "" => 1.0,
        "k" => 1e3,
        "m" => 1e6,
        "g" => 1e9,
        _ => return None,
    };
    text[..at].parse::<f64>().ok().map(|number| number * factor)
}

/// RFC 4648 section 4.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for group in bytes.chunks(3) {
        let bits = (0..3)
            .fold(0_u32, |bits, at| bits << 8 | u32::from(group.get(at).copied().unwrap_or(0)));
        for at in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * at)) as usize & 63];
            out.push(if at <= group.len() { char::from(letter) } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_units_of_wrk() {
        assert_eq!(
            [metric("10"), metric("2k"), metric("1.5M")],
            [Some(10.0), Some(2e3), Some(1.5e6)]
        );
        assert_eq!(metric("2x"), None);
    }

    #[test]
    fn accounts_are_spelled_as_basic_authentication_wants_them() {
        assert_eq!(base64(b"Aladdin:open sesame"), "QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
        assert_eq!([base64(b"a"), base64(b"ab"), base64(b"abc")], ["YQ==", "YWI=", "YWJj"]);
    }
}
