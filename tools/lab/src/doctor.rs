//! The lab's doctor: observes running stacks from outside and fills the [`Matrix`].
//!
//! Configuration files are not read: a script reports the settings of PHP, the rest is observed on
//! the wire and in `/proc`. A log is a file that grows with requests.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use crate::catalog::Kind;
use crate::error::{Error, Result};
use crate::fairness::{Matrix, Setting};
use crate::fixture::Fixture;
use crate::generator::{Task, run_count};
use crate::http;
use crate::lab::Lab;
use crate::request_spec::RequestSpec;
use crate::stack::{Stack, check_same_responses};
use outboard_profile::process_table::{Pid, Process};

/// Settings that must be equal in all stacks; of PHP, those that change the cost of a request.
const MUST_AGREE: [&str; 12] = [
    "PHP version",
    "opcache",
    "JIT",
    "opcache.validate_timestamps",
    "memory_limit",
    "output_buffering",
    "realpath_cache_size",
    "zend.assertions",
    "extensions",
    "keep-alive",
    "compression",
    "access log",
];

/// The number of requests during which a log may grow.
const LOOKED_AT: u64 = 20;

/// The shortest log line of a request; a file that grows by less is no access log.
const LOG_LINE_BYTES: u64 = 30;

/// A page large enough for any server to compress.
const PAGE: &str = "/page.php";

const SETTINGS: &str = "/settings.php";

/// Starts the stacks that should be alike and observes them. Stacks that are not installed are
/// omitted, with a note.
pub fn examine(lab: &mut Lab, notes: &mut Vec<String>) -> Result<Matrix> {
    let fixture = Fixture::unpack(lab, "doctor", &[])?;
    let mut stacks = Vec::new();
    for kind in Kind::alike() {
        match kind.start(lab, &fixture.public()) {
            Ok(stack) => stacks.push(stack),
            Err(error) => notes.push(format!("doctor without {}: {error}", kind.name())),
        }
    }
    let stacks: Vec<&Stack> = stacks.iter().collect();
    check_same_responses(&stacks, PAGE)?;
    let mut columns = Vec::new();
    for stack in &stacks {
        let mut column = php_settings(stack)?;
        column.extend(observe(stack, &RequestSpec::get(PAGE))?);
        columns.push(column);
    }
    Ok(matrix(&stacks, columns))
}

/// The settings that can be observed on stacks whose PHP is unknown.
pub fn compare(stacks: &[&Stack], requests: &[RequestSpec]) -> Result<Matrix> {
    let seen = stacks.iter().zip(requests).map(|(stack, request)| observe(stack, request));
    let columns = seen.collect::<Result<Vec<_>>>()?;
    Ok(matrix(stacks, columns))
}

type Column = Vec<(String, String)>;

/// Every setting of any stack, in order of appearance.
fn matrix(stacks: &[&Stack], columns: Vec<Column>) -> Matrix {
    let mut names: Vec<String> = Vec::new();
    for (name, _) in columns.iter().flatten() {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    let value = |column: &Column, name: &String| {
        column.iter().find(|(other, _)| other == name).map(|(_, value)| value.clone())
    };
    let settings = names.into_iter().map(|name| Setting {
        values: columns.iter().map(|column| value(column, &name)).collect(),
        must_agree: MUST_AGREE.contains(&name.as_str()),
        name,
    });
    Matrix {
        settings: settings.collect(),
        stacks: stacks.iter().map(|stack| stack.name.to_owned()).collect(),
    }
}

/// The settings that the stack's PHP reports.
fn php_settings(stack: &Stack) -> Result<Column> {
    // Twice, since the first request of a process may differ.
    http::get(stack.address, SETTINGS)?;
    let response = http::get(stack.address, SETTINGS)?;
    let unexpected = |what| Error::Unexpected { who: stack.name.into(), what };
    let values: Vec<(String, String)> = serde_json::from_slice(&response.body)
        .map_err(|error| unexpected(format!("{error} in {}", response.summary())))?;
    Ok(values)
}

/// The settings that any server shows.
fn observe(stack: &Stack, request: &RequestSpec) -> Result<Column> {
    let (_, plain) = http::send_with_head(stack.address, request)?;
    let gzip = request.clone().header("Accept-Encoding: gzip, deflate, br, zstd");
    let (_, compressed) = http::send_with_head(stack.address, &gzip)?;
    let rows = [
        ("keep-alive", keep_alive(stack.address, request)?),
        ("compression", http::field(&compressed, "content-encoding").unwrap_or("none").to_owned()),
        ("access log", access_log(stack, request)?),
        ("processes", processes(stack)),
        ("head", format!("{} bytes", plain.len())),
    ];
    Ok(rows.map(|(name, value)| (name.to_owned(), value)).into())
}

fn keep_alive(address: SocketAddr, request: &RequestSpec) -> Result<String> {
    let load = run_count(&Task::new(address, request, 1), LOOKED_AT)?.load;
    Ok(if load.reused.unwrap_or(0) + 1 >= LOOKED_AT { "on" } else { "off" }.into())
}

/// Whether a file that a process of the stack has open for writing grows with requests.
fn access_log(stack: &Stack, request: &RequestSpec) -> Result<String> {
    let before = sizes(&stack.group.pids());
    run_count(&Task::new(stack.address, request, 1), LOOKED_AT)?;
    stack.settle();
    let after = sizes(&stack.group.pids());
    let line_each = LOOKED_AT * LOG_LINE_BYTES;
    let grown = |(file, size): &(&PathBuf, &u64)| {
        before.get(*file).is_some_and(|was| size.saturating_sub(*was) >= line_each)
    };
    let names = after.iter().filter(grown).filter_map(|(file, _)| file.file_name());
    let names: Vec<_> = names.map(|name| name.to_string_lossy()).collect();
    Ok(if names.is_empty() { "none".into() } else { names.join(", ") })
}

/// Files open for writing, and their sizes.
fn sizes(pids: &[Pid]) -> BTreeMap<PathBuf, u64> {
    let descriptors = pids
        .iter()
        .flat_map(|pid| fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten());
    let files = descriptors.filter(|entry| is_written(&entry.path())).filter_map(|entry| {
        let file = fs::read_link(entry.path()).ok().filter(|file| file.is_absolute())?;
        let data = fs::metadata(&file).ok().filter(fs::Metadata::is_file)?;
        Some((file, data.len()))
    });
    files.collect()
}

/// Whether a descriptor is open for writing: the owner's write bit of the link (proc(5), fd).
fn is_written(descriptor: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::symlink_metadata(descriptor).is_ok_and(|link| link.permissions().mode() & 0o200 != 0)
}

/// `2 nginx, 4 php-fpm8.2`.
fn processes(stack: &Stack) -> String {
    let mut count = BTreeMap::<String, usize>::new();
    for process in stack.group.pids().into_iter().filter_map(Process::read) {
        *count.entry(process.name).or_default() += 1;
    }
    let words: Vec<String> = count.iter().map(|(name, count)| format!("{count} {name}")).collect();
    words.join(", ")
}
