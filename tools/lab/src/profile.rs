//! Profiles of stacks under load, taken in slices of their own that no statistics use.
//!
//! Called by [`crate::slice`] and `lab ab --profile`. A profile that cannot be taken is reported as
//! progress and is no failure.

use std::thread;
use std::time::Duration;

use outboard_profile::folded::Folded;
use outboard_profile::{Sampling, native, php, zygotes};
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::lab::Lab;
use crate::load::Load;
use crate::stack::Stack;

/// The sampling of one profile.
const SLICE: Sampling = Sampling { duration: Duration::from_secs(2), hz: 199 };

/// What frames are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Functions of PHP.
    Php,
    /// Functions of the program, its libraries and the kernel.
    Native,
}

impl Kind {
    /// The words for a title.
    pub fn word(self) -> &'static str {
        match self {
            Self::Php => "PHP functions",
            Self::Native => "native functions",
        }
    }
}

/// Where the time of one stack went.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Profile {
    /// The name of its [`crate::report::Section`], once it is in a report.
    pub section: String,
    /// The experiment and its settings.
    pub experiment: String,
    /// The stack.
    pub stack: String,
    /// What the frames are.
    pub kind: Kind,
    /// The stacks of frames.
    pub folded: Folded,
}

/// Profiles of these stacks: of PHP functions if the stack is Outboard, of native functions if perf
/// is installed.
pub fn of_stacks(
    lab: &Lab,
    stacks: &[&Stack],
    mut load: impl FnMut(&Stack) -> Result<Load>,
) -> Result<Vec<Profile>> {
    let mut profiles = Vec::new();
    for stack in stacks {
        let pids = stack.group.pids();
        let zygotes = zygotes(&pids);
        if !zygotes.is_empty() {
            let folded = during(|| load(stack), || Ok(php(&zygotes, SLICE)?))?;
            profiles.extend(named(lab, stack, Kind::Php, folded.map(|all| all.computing())));
        }
        let folded = during(|| load(stack), || Ok(native(&pids, SLICE, &lab.scratch)?))?;
        profiles.extend(named(lab, stack, Kind::Native, folded));
    }
    Ok(profiles)
}

fn named(lab: &Lab, stack: &Stack, kind: Kind, folded: Result<Folded>) -> Option<Profile> {
    let name = stack.name;
    match folded {
        Ok(folded) => {
            lab.progress(&format!("{name}: {} samples of {}", folded.samples(), kind.word()));
            let (section, experiment) = (String::new(), String::new());
            Some(Profile { section, experiment, stack: name.into(), kind, folded })
        }
        Err(error) => {
            lab.progress(&format!("{name}: no profile of {}: {error}", kind.word()));
            None
        }
    }
}

/// Takes a profile while load is sent; the results of the load are dropped.
pub(crate) fn during(
    mut load: impl FnMut() -> Result<Load>,
    profile: impl FnOnce() -> Result<Folded> + Send,
) -> Result<Result<Folded>> {
    thread::scope(|scope| {
        let profile = scope.spawn(profile);
        while !profile.is_finished() {
            load()?;
        }
        Ok(profile.join().expect("a profile does not panic"))
    })
}
