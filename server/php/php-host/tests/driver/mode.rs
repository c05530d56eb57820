//! The modes of an app, for tests that hold in all of them.

use super::{TempDir, settings, settings_of_worker};
use outboard_ring::control::{HostSettings, Isolation};

/// How the code of a test runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Mode {
    Classic,
    Reset,
    Fork,
    Snapshot,
}

/// All of them.
pub const MODES: [Mode; 4] = [Mode::Classic, Mode::Reset, Mode::Fork, Mode::Snapshot];

/// Settings for `worker.php`, in which `code` runs for each request.
pub fn settings_in(folder: &TempDir, mode: Mode, boot: &str, code: &str) -> HostSettings {
    let code = match mode {
        Mode::Classic => code.to_owned(),
        Mode::Snapshot => format!("{boot} Outboard\\snapshot(); {code}"),
        _ => format!("{boot} while (Outboard\\handle_request(function () {{ {code} }}));"),
    };
    let script = folder.write("worker.php", &format!("<?php {code}"));
    if mode == Mode::Classic {
        return settings();
    }
    let mut settings = settings_of_worker(script);
    if mode != Mode::Reset {
        settings.worker.as_mut().unwrap().isolation = Isolation::Fork;
    }
    settings
}
