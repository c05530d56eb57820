//! [`Forking`]: a zygote whose script boots in it, and forks workers at one of the script's calls.
//!
//! Created by `boot`, held by the running script. Invariant: the start of the app is reported once.

use crate::boot_files;
use crate::exit;
use crate::link::Link;
use crate::zygote::{LoopEnd, Zygote};
use outboard_ring::control;
use std::cell::RefCell;
use std::io;
use std::rc::Rc;

/// A zygote whose script is about to call for a request.
#[derive(Debug)]
pub(crate) struct Forking {
    zygote: Zygote,
    is_reported: bool,
    /// Why the script cannot take its snapshot.
    refusal: Option<String>,
}

/// What [`Forking::fork_workers`] returned for.
#[derive(Debug)]
pub(crate) enum Forked {
    /// This process is a worker with this ring.
    Worker(Rc<RefCell<Link>>),
    /// A child that is no worker has exited; more workers can be forked.
    Exited(i32, Box<Forking>),
    /// This is the zygote, and it is to exit.
    Leave,
}

impl Forking {
    pub(crate) fn new(zygote: Zygote) -> Self {
        Self { is_reported: false, zygote, refusal: None }
    }

    /// Has exits of the script's own children reported from now on.
    pub(crate) fn watch_others(&mut self) {
        self.zygote.watch_others();
    }

    pub(crate) fn leaves_programs(&self) -> bool {
        self.zygote.settings().background_programs
    }

    /// Has the start's report say how workers are rewound, or why they are not.
    pub(crate) fn set_rewind(&mut self, how: Result<control::Rewind, String>) {
        self.zygote.set_rewind(how);
    }

    /// Has the start's report name something that the boot has read of a request.
    pub(crate) fn add_request_read(&mut self, read: control::RequestRead) {
        self.zygote.add_request_read(read);
    }

    /// The script ends now, for this reason.
    pub(crate) fn refuse(&mut self, why: String) {
        self.refusal = Some(why);
    }

    /// Reports that the app has started, and forks workers. Returns in each of them.
    pub(crate) fn fork_workers(mut self) -> Forked {
        let sent = self.report_start();
        match sent.and_then(|()| self.zygote.follow_orders()) {
            Ok(LoopEnd::Forked(number, fds)) => {
                let link = fds.connect(&self.zygote.settings().app, number);
                // The descriptors are closed already.
                std::mem::forget(self);
                Forked::Worker(link)
            }
            Ok(LoopEnd::Exited(pid)) => Forked::Exited(pid, Box::new(self)),
            Ok(LoopEnd::Leave) => Forked::Leave,
            Err(error) => {
                eprintln!("outboard-php: the zygote exits: {error}");
                exit::leave(1)
            }
        }
    }

    /// Reports what the script has read, once.
    pub(crate) fn report_files(&mut self) {
        let Some(read) = boot_files::end() else { return };
        if let Err(error) = self.zygote.report_files(&read) {
            eprintln!("outboard-php: changes of files are not noticed: {error}");
        }
    }

    fn report_start(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.is_reported, true) {
            return Ok(());
        }
        self.zygote.report_start()
    }

    /// In a child that the script has forked: drops everything of the zygote.
    pub(crate) fn leave_to_child(self) {
        self.zygote.unblock_exits();
    }

    /// Reports why the script forked no workers.
    pub(crate) fn fail(mut self, why: &str) -> io::Result<()> {
        self.report_files();
        self.zygote.report_failure(self.refusal.as_deref().unwrap_or(why))
    }
}
