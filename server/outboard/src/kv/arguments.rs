//! Arguments of `outboard kv`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum KvAction {
    /// Print a value. Exit code 3: the record does not exist.
    Get {
        #[command(flatten)]
        pick: KvSelector,
        /// The record's key.
        id: String,
    },
    /// Write a record.
    Put {
        #[command(flatten)]
        pick: KvSelector,
        /// The record's key.
        id: String,
        /// Its value [default: read from standard input].
        value: Option<String>,
        /// Its lifetime in milliseconds.
        #[arg(long, value_name = "MS")]
        ttl_ms: Option<u64>,
    },
    /// Delete a record, if it exists.
    Delete {
        #[command(flatten)]
        pick: KvSelector,
        /// The record's key.
        id: String,
    },
    /// Print records in the order of their keys, one per line: key, tab, value, with \xNN for bytes
    /// that are not printable ASCII.
    Scan {
        #[command(flatten)]
        pick: KvSelector,
        /// The first key; empty: from the start.
        #[arg(default_value = "")]
        start: String,
        /// The key to end before.
        end: Option<String>,
    },
    /// Contents and activity of the store.
    Stats {
        #[command(flatten)]
        pick: KvSelector,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Write a consistent copy of all records of a namespace to a file, while the server runs.
    Backup {
        #[command(flatten)]
        pick: KvSelector,
        /// The file; it appears only when it is complete.
        file: PathBuf,
    },
    /// Restore all records of a backup; records that are not in it remain.
    Restore {
        #[command(flatten)]
        pick: KvSelector,
        /// The file.
        file: PathBuf,
    },
    /// Merge all files of a namespace, to free the space of deleted records.
    Compact {
        #[command(flatten)]
        pick: KvSelector,
    },
}

#[derive(Debug, Args)]
pub(crate) struct KvSelector {
    /// The namespace [default: `default`].
    #[arg(long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
    /// The admin socket of the server.
    #[arg(long, value_name = "SOCKET")]
    pub(crate) admin: Option<PathBuf>,
}
