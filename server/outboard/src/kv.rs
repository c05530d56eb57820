//! `outboard kv`: the records of a running server's entity store.
//!
//! Uses the admin socket. A backup is written under a temporary name and renamed when it is complete
//! and on disk; a restore reads all of a backup before it writes any of it.

mod arguments;

pub(crate) use arguments::{KvAction, KvSelector};

use crate::admin;
use crate::admin::AdminArguments;
use crate::admin_client::{AdminClient, Incoming, default_socket};
use crate::terminal::{Terminal, say};
use outboard_admin_api::{Endpoint, kv};
use outboard_entity_store::{
    Record, Restored, read_backup, write_backup_head, write_backup_record,
};
use serde_json::Value;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;
use std::process::ExitCode;

/// How much of a backup is restored at once, bytes.
const PART_BYTES: usize = 1 << 20;
/// Maximum size of a value in a backup: that of `kv.max_value`.
const VALUE_MAX_BYTES: usize = 64 << 20;
/// Exit code if the record does not exist.
const MISSING: u8 = 3;

pub(crate) fn run(action: &KvAction, terminal: &Terminal) -> ExitCode {
    let done = match action {
        KvAction::Get { pick, id } => get(pick, id),
        KvAction::Put { pick, id, value, ttl_ms } => put(pick, id, value.as_deref(), *ttl_ms),
        KvAction::Delete { pick, id } => delete(pick, id),
        KvAction::Scan { pick, start, end } => scan(pick, start, end.as_deref()),
        KvAction::Stats { pick, json } => Ok(stats(pick, *json, terminal)),
        KvAction::Backup { pick, file } => backup(pick, file),
        KvAction::Restore { pick, file } => restore(pick, file),
        KvAction::Compact { pick } => Ok(compact(pick, terminal)),
    };
    done.unwrap_or_else(|message| terminal.fail(&message, 1))
}

type Done = Result<ExitCode, String>;

fn client(pick: &KvSelector) -> Result<AdminClient, String> {
    AdminClient::connect(&pick.admin.clone().unwrap_or_else(default_socket))
}

/// The path of a request, with its parameters and the namespace.
fn path(pick: &KvSelector, of: &str, parameters: &[(&str, &str)]) -> String {
    let mut path = format!("{of}?");
    let namespace = pick.namespace.iter().map(|name| ("namespace", name.as_str()));
    for (name, value) in parameters.iter().copied().chain(namespace) {
        let _ = write!(path, "{name}=");
        for byte in value.bytes() {
            let _ = write!(path, "%{byte:02X}");
        }
        path.push('&');
    }
    path
}

/// The message for a failed request.
fn refusal(status: u16, body: &[u8]) -> String {
    let message: Option<Value> = serde_json::from_slice(body).ok();
    let message = message.and_then(|body| body["error"].as_str().map(str::to_owned));
    match (status, message) {
        (_, Some(message)) => message,
        (400, None) => "invalid request; check that the namespace exists".to_owned(),
        (413, None) => "the value is larger than kv.max_value".to_owned(),
        (503, None) => "the store is overloaded; try again".to_owned(),
        (507, None) => "there is no space left".to_owned(),
        (status, None) => format!("the server responded with {status}; see its error log"),
    }
}

fn get(pick: &KvSelector, id: &str) -> Done {
    let response = client(pick)?.request("GET", &path(pick, "/v0/entity", &[("id", id)]), &[])?;
    match response.status {
        200 => print(&response.body),
        404 => Ok(ExitCode::from(MISSING)),
        status => Err(refusal(status, &response.body)),
    }
}

fn print(bytes: &[u8]) -> Done {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(|error| error.to_string())?;
    Ok(ExitCode::SUCCESS)
}

fn put(pick: &KvSelector, id: &str, value: Option<&str>, ttl_ms: Option<u64>) -> Done {
    let mut read = Vec::new();
    let value = match value {
        Some(value) => value.as_bytes(),
        None => {
            let all = io::stdin().lock().read_to_end(&mut read);
            all.map_err(|error| format!("cannot read the value: {error}"))?;
            &read
        }
    };
    let ttl = ttl_ms.map(|ms| ms.to_string());
    let mut parameters = vec![("id", id)];
    parameters.extend(ttl.as_deref().map(|ms| ("ttl", ms)));
    let response = client(pick)?.request("PUT", &path(pick, "/v0/entity", &parameters), value)?;
    expect(response.status, 201, &response.body)
}

fn delete(pick: &KvSelector, id: &str) -> Done {
    let response =
        client(pick)?.request("DELETE", &path(pick, "/v0/entity", &[("id", id)]), &[])?;
    expect(response.status, 202, &response.body)
}

fn expect(status: u16, wanted: u16, body: &[u8]) -> Done {
    if status == wanted { Ok(ExitCode::SUCCESS) } else { Err(refusal(status, body)) }
}

fn scan(pick: &KvSelector, start: &str, end: Option<&str>) -> Done {
    let mut parameters = vec![("start", start)];
    parameters.extend(end.map(|end| ("end", end)));
    let path = path(pick, kv::BACKUP_PATH, &parameters);
    let mut client = client(pick)?;
    let (status, mut incoming) = client.open("GET", &path, &[])?;
    if status != 200 {
        return Err(rest_of(status, incoming));
    }
    let mut out = BufWriter::new(io::stdout().lock());
    for record in read_backup(&mut incoming, VALUE_MAX_BYTES) {
        let Restored { id, value, .. } = record.map_err(|error| error.to_string())?;
        let line = format!("{}\t{}\n", id.escape_ascii(), value.escape_ascii());
        out.write_all(line.as_bytes()).map_err(|error| error.to_string())?;
    }
    out.flush().map_err(|error| error.to_string())?;
    Ok(ExitCode::SUCCESS)
}

fn rest_of(status: u16, mut incoming: Incoming<'_>) -> String {
    let mut body = Vec::new();
    // The status of the response is more specific than an incomplete body.
    let _ = incoming.read_to_end(&mut body);
    refusal(status, &body)
}

fn stats(pick: &KvSelector, json: bool, terminal: &Terminal) -> ExitCode {
    let stats = kv::Stats { namespace: pick.namespace.clone() };
    let arguments = AdminArguments { admin: pick.admin.clone(), json };
    admin::run(&arguments, terminal, &stats, |page, reply| {
        reply.namespaces.iter().try_for_each(|namespace| write_stats(page, namespace))
    })
}

fn write_stats(page: &mut String, stats: &kv::NamespaceStats) -> std::fmt::Result {
    writeln!(page, "namespace {}: durability {}", stats.namespace, stats.durability)?;
    writeln!(
        page,
        "  on disk    about {} records, {} files, {} KiB; {} KiB not yet in a file",
        stats.records,
        stats.files,
        stats.file_bytes / 1024,
        stats.buffered_bytes / 1024
    )?;
    writeln!(
        page,
        "  in memory  {} records, {} KiB",
        stats.cached_records,
        stats.cached_bytes / 1024
    )?;
    writeln!(
        page,
        "  writes     {} in {} commits; {} waiting, {} refused",
        stats.writes, stats.commits, stats.writes_waiting, stats.writes_refused
    )?;
    writeln!(
        page,
        "  reads      {} from disk; {} waiting, {} refused",
        stats.reads_from_disk, stats.reads_waiting, stats.reads_refused
    )?;
    for (word, lines) in [("damaged", &stats.damaged), ("found", &stats.findings)] {
        lines.iter().try_for_each(|line| writeln!(page, "  {word:<10} {line}"))?;
    }
    Ok(())
}

fn backup(pick: &KvSelector, file: &Path) -> Done {
    let at = |error: io::Error| format!("cannot write {}: {error}", file.display());
    let partial = file.with_extension("part");
    let written = fetch(pick, &partial);
    let checked = written.and_then(|()| whole(&partial));
    let records = checked.inspect_err(|_| {
        // The incomplete file is useless; the error of the transfer is reported.
        let _ = std::fs::remove_file(&partial);
    })?;
    std::fs::rename(&partial, file).map_err(at)?;
    say!("{records} records in {}", file.display());
    Ok(ExitCode::SUCCESS)
}

/// Writes a backup to a file, and syncs it to disk.
fn fetch(pick: &KvSelector, file: &Path) -> Result<(), String> {
    let at = |error: io::Error| format!("cannot write {}: {error}", file.display());
    let mut out = File::create(file).map_err(at)?;
    let mut client = client(pick)?;
    let (status, mut incoming) = client.open("GET", &path(pick, kv::BACKUP_PATH, &[]), &[])?;
    if status != 200 {
        return Err(rest_of(status, incoming));
    }
    io::copy(&mut incoming, &mut out).map_err(at)?;
    out.sync_all().map_err(at)
}

fn records(
    file: &Path,
) -> Result<impl Iterator<Item = Result<Restored, outboard_entity_store::BackupError>>, String> {
    let opened = File::open(file);
    let opened = opened.map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    Ok(read_backup(BufReader::with_capacity(1 << 16, opened), VALUE_MAX_BYTES))
}

/// The number of records of a backup, if it is complete.
fn whole(file: &Path) -> Result<u64, String> {
    let mut count = 0;
    for record in records(file)? {
        record.map_err(|error| format!("{}: {error}", file.display()))?;
        count += 1;
    }
    Ok(count)
}

fn restore(pick: &KvSelector, file: &Path) -> Done {
    let count = whole(file)?;
    let mut client = client(pick)?;
    let mut part = Part::new();
    for record in records(file)? {
        part.push(&record.map_err(|error| format!("{}: {error}", file.display()))?);
        if part.bytes.len() >= PART_BYTES {
            std::mem::replace(&mut part, Part::new()).send(&mut client, pick)?;
        }
    }
    part.send(&mut client, pick)?;
    say!("{count} records restored");
    Ok(ExitCode::SUCCESS)
}

/// A part of a backup, in the same format.
struct Part {
    bytes: Vec<u8>,
    records: u64,
}

impl Part {
    fn new() -> Self {
        let mut bytes = Vec::new();
        write_backup_head(&mut bytes);
        Self { bytes, records: 0 }
    }

    fn push(&mut self, record: &Restored) {
        let (expires_ms, value) = (record.expires_ms, record.value.as_slice().into());
        let record_with_ttl = Record { version: 0, expires_ms, value };
        write_backup_record(&mut self.bytes, Ok((&record.id, &record_with_ttl)));
        self.records += 1;
    }

    fn send(mut self, client: &mut AdminClient, pick: &KvSelector) -> Result<(), String> {
        write_backup_record(&mut self.bytes, Err(self.records));
        let path = path(pick, kv::Restore::PATH, &[]);
        loop {
            let response = client.request("POST", &path, &self.bytes)?;
            match response.status {
                200 => return Ok(()),
                // Repeating a write has no effect.
                503 => std::thread::sleep(std::time::Duration::from_millis(100)),
                status => return Err(refusal(status, &response.body)),
            }
        }
    }
}

fn compact(pick: &KvSelector, terminal: &Terminal) -> ExitCode {
    let compact = kv::Compact { namespace: pick.namespace.clone() };
    let arguments = AdminArguments { admin: pick.admin.clone(), json: false };
    admin::run(&arguments, terminal, &compact, |_, _| Ok(()))
}

#[cfg(test)]
mod tests;
