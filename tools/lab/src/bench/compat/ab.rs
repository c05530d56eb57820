//! `outboard bench ab`: the flags and the report of ab (ApacheBench).

use super::getopt::{GetoptArgs, GetoptSpec};
use super::shared::{header, headers, helps, number, only_step, plan, seconds, warnings};
use crate::bench::outputs;
use crate::bench::stop::Stop;
use crate::terminal::show;
use outboard_load::{Request, Run, Summary, Template, report};
use std::path::Path;
use std::time::Duration;

/// The duration of a run that only a number of requests ends.
const UNBOUNDED: Duration = Duration::from_secs(24 * 3600);

const AB: GetoptSpec = GetoptSpec { short: "n:c:t:s:kip:u:T:m:H:C:A:e:g:v:qdSrlV", long: &[] };

pub(in crate::bench) fn ab(words: &[String]) -> Result<u8, Stop> {
    if helps(words) {
        return Ok(0);
    }
    let flags = GetoptArgs::read(&AB, words)?;
    let mut plan = plan(flags.url()?)?;
    plan.connections = flags.parsed('c', number)?.unwrap_or(1);
    plan.duration = flags.parsed('t', seconds)?.unwrap_or(UNBOUNDED);
    // Without -n, ab sends 50,000 requests with -t, otherwise one.
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
    Ok(warnings(&summary))
}

fn ab_request(flags: &GetoptArgs, request: &mut Request) -> Result<(), Stop> {
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
    fn credentials_are_encoded_as_base64() {
        assert_eq!(base64(b"Aladdin:open sesame"), "QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
        assert_eq!([base64(b"a"), base64(b"ab"), base64(b"abc")], ["YQ==", "YWI=", "YWJj"]);
    }
}
