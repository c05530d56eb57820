//! The lab's doctor: looks at running stacks from outside and fills the [`Matrix`].
//!
//! Nothing is taken from a configuration: PHP is asked by a script, the rest is seen on the wire
//! and in `/proc`. A log is what grows while requests are answered.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use crate::ask::Ask;
use crate::catalog::Kind;
use crate::error::{Error, Result};
use crate::fairness::{Matrix, Setting};
use crate::fixture::Fixture;
use crate::generator::{Task, run_count};
use crate::http;
use crate::lab::Lab;
use crate::process_table::{Pid, Process};
use crate::stack::{Stack, check_same_answers};

/// What has to be the same in all stacks. Of PHP: what changes the cost of a request.
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

/// Requests during which a log may grow.
const LOOKED_AT: u64 = 20;

/// The shortest line that a log has for a request; what grows by less is no log of requests.
const LOG_LINE_BYTES: u64 = 30;

/// A page large enough for any server to compress.
const PAGE: &str = "/page.php";

const SETTINGS: &str = "/settings.php";

/// Starts the stacks that ought to be alike, and looks at them. Those that are not installed are
/// left out, with a note.
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
    check_same_answers(&stacks, PAGE)?;
    let mut columns = Vec::new();
    for stack in &stacks {
        let mut column = php_settings(stack)?;
        column.extend(observe(stack, &Ask::get(PAGE))?);
        columns.push(column);
    }
    Ok(matrix(&stacks, columns))
}

/// What can be seen of stacks of which nothing else is known.
pub fn compare(stacks: &[&Stack], asks: &[Ask]) -> Result<Matrix> {
    let seen = stacks.iter().zip(asks).map(|(stack, ask)| observe(stack, ask));
    let columns = seen.collect::<Result<Vec<_>>>()?;
    Ok(matrix(stacks, columns))
}

type Column = Vec<(String, String)>;

/// Every setting that any of the stacks has, in the order of the first that has it.
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

/// What the PHP of a stack says of itself.
fn php_settings(stack: &Stack) -> Result<Column> {
    // Twice: what a process does with its first request only is no setting.
    http::get(stack.address, SETTINGS)?;
    let answer = http::get(stack.address, SETTINGS)?;
    let unexpected = |what| Error::Unexpected { who: stack.name.into(), what };
    let values: Vec<(String, String)> = serde_json::from_slice(&answer.body)
        .map_err(|error| unexpected(format!("{error} in {}", answer.summary())))?;
    Ok(values)
}

/// What any server shows.
fn observe(stack: &Stack, ask: &Ask) -> Result<Column> {
    let (_, plain) = http::send_with_head(stack.address, ask)?;
    let gzip = ask.clone().header("Accept-Encoding: gzip, deflate, br, zstd");
    let (_, compressed) = http::send_with_head(stack.address, &gzip)?;
    let rows = [
        ("keep-alive", keep_alive(stack.address, ask)?),
        ("compression", http::field(&compressed, "content-encoding").unwrap_or("none").to_owned()),
        ("access log", access_log(stack, ask)?),
        ("processes", processes(stack)),
        ("head", format!("{} bytes", plain.len())),
    ];
    Ok(rows.map(|(name, value)| (name.to_owned(), value)).into())
}

fn keep_alive(address: SocketAddr, ask: &Ask) -> Result<String> {
    let load = run_count(&Task::new(address, ask, 1), LOOKED_AT)?.load;
    Ok(if load.reused.unwrap_or(0) + 1 >= LOOKED_AT { "kept" } else { "closed" }.into())
}

/// Whether any file that a process of the stack has open for writing grows by requests.
fn access_log(stack: &Stack, ask: &Ask) -> Result<String> {
    let before = sizes(&stack.group.pids());
    run_count(&Task::new(stack.address, ask, 1), LOOKED_AT)?;
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
