//! Starts the engine from the supervisor's settings: environment, user, ini values, PHP.
//!
//! Called by the zygote once; a keeper takes the first steps only. Invariants: the user is changed before the engine starts, so that
//! opcache's lock file and PHP's logs belong to that user; what PHP prints goes to the supervisor at once, so
//! that it has the last lines of a start that ends the process.

use crate::ini_files::IniFiles;
use crate::{boot_files, engine, ini, process};
use outboard_ring::control::{Event, HostSettings, Isolation};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The variable with the directory of further ini files.
const SCAN_DIR: &str = "PHP_INI_SCAN_DIR";

/// Why the engine did not start.
#[derive(Debug)]
pub(crate) struct StartError(pub(crate) String);

impl StartError {
    pub(crate) fn new(what: &str, why: impl std::fmt::Display) -> Self {
        Self(format!("{what}: {why}"))
    }
}

/// Makes PHP's allocator use huge pages (`zend_mm_use_huge_pages`, read once at start): its chunks
/// are 2 MiB each and filled from the beginning, so there are fewer page faults for the same
/// memory.
const HUGE_PAGES: &str = "USE_ZEND_ALLOC_HUGE_PAGES";

/// Starts the engine with `settings`; returns the event for the process `supervisor`.
pub(crate) fn start(settings: &HostSettings, supervisor: u32) -> Result<Event, StartError> {
    let is_rewinding =
        settings.worker.as_ref().is_some_and(|worker| worker.isolation == Isolation::Rewind);
    let entries = ini_entries(settings)?;
    let sapi_name = CString::new(settings.sapi_name.as_str())
        .map_err(|error| StartError::new("the SAPI name", error))?;
    drop_rights(settings, supervisor)?;
    if let Some(sandbox) = &settings.sandbox {
        crate::sandbox::enter(sandbox, &settings.app, is_rewinding)
            .map_err(|error| StartError::new("the sandbox", error))?;
    }
    process::add_user_variables();
    let files = IniFiles::of(settings);
    // A snapshot's pages are small, and a rewind unmaps the chunks of a request.
    let chosen_huge_pages = settings.env.contains_key(HUGE_PAGES) || is_rewinding;
    if !chosen_huge_pages {
        process::set_variable(HUGE_PAGES, b"1");
    }
    engine::use_xdebug(settings.xdebug);
    let root = CString::new(settings.document_root.as_os_str().as_bytes());
    engine::set_document_root(root.map_err(|error| StartError::new("the root", error))?);
    boot_files::begin(settings);
    let started = start_engine(&files, sapi_name, entries);
    boot_files::pause();
    let facts = started?;
    if files.scan_dir.is_some() && !settings.env.contains_key(SCAN_DIR) {
        process::remove_variable(SCAN_DIR);
    }
    if !chosen_huge_pages {
        process::remove_variable(HUGE_PAGES);
    }
    for name in settings.fixed_ini.keys() {
        // Unknown names are values of extensions that are not loaded: no error, as in php.ini.
        engine::fix_ini(name);
    }
    if let Some(sandbox) = &settings.sandbox {
        crate::sandbox::restrict_files(sandbox, &settings.app)
            .map_err(|error| StartError::new("the sandbox", error))?;
    }
    Ok(Event::Started {
        pid: std::process::id().cast_signed(),
        php_version: facts.php_version,
        opcache: facts.opcache,
        ini_file: facts.ini_file,
        post_max_bytes: facts.post_max_bytes,
        rewind: None,
        request_reads: Vec::new(),
        rewind_refused: None,
    })
}

/// Sets the environment, the user and the limits of the process, which are those of everything that it starts.
pub(crate) fn drop_rights(settings: &HostSettings, supervisor: u32) -> Result<(), StartError> {
    process::set_environment(&settings.env);
    if let Some((uid, gid)) = settings.run_as {
        process::become_user(uid, gid).map_err(|error| {
            StartError::new(&format!("cannot become user {uid}, group {gid}"), error)
        })?;
        // The kernel cleared it with the change of user (PR_SET_PDEATHSIG in prctl(2)).
        if !process::die_with(supervisor) {
            return Err(StartError("the supervisor has exited".into()));
        }
    }
    let confined = process::drop_capabilities()
        .and_then(|()| process::limit(&settings.rlimits))
        .and_then(|()| process::set_dumpable(false));
    confined.map_err(|error| StartError::new("cannot drop privileges", error))?;
    if settings.no_new_privileges {
        process::forbid_new_privileges()
            .map_err(|error| StartError::new("cannot forbid new privileges", error))?;
    }
    Ok(())
}

fn start_engine(
    files: &IniFiles<'_>,
    sapi_name: CString,
    entries: CString,
) -> Result<engine::Facts, StartError> {
    let ini_file = files.file.as_deref().map(readable_file).transpose()?;
    if let Some(directory) = &files.scan_dir {
        process::set_variable(SCAN_DIR, directory.as_os_str().as_bytes());
    }
    let facts = engine::start(sapi_name, ini_file, entries);
    facts.ok_or_else(|| StartError("the engine failed (php_module_startup)".into()))
}

fn ini_entries(settings: &HostSettings) -> Result<CString, StartError> {
    let mut text = String::new();
    ini::write(&settings.ini, &mut text)
        .and_then(|()| ini::write(&settings.fixed_ini, &mut text))
        .map_err(|error| StartError(error.to_string()))?;
    CString::new(text).map_err(|error| StartError::new("ini settings", error))
}

/// PHP itself silently skips a file that its user cannot read.
fn readable_file(path: &Path) -> Result<CString, StartError> {
    let name = format!("cannot read the ini file {}", path.display());
    std::fs::File::open(path).map_err(|error| StartError::new(&name, error))?;
    CString::new(path.as_os_str().as_bytes()).map_err(|error| StartError::new(&name, error))
}
