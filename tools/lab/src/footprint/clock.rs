//! [`Clock`]: the time that stepped processes see, which nearly stands still while they serve a request.
//!
//! Owned by [`super::stepper`]. A request takes seconds while it is stepped: without this, the timers and the caches
//! of a server would expire within it. Invariant: what `clock_gettime` and `gettimeofday` of the vDSO (vdso(7))
//! return is behind by nearly the time that requests took; a wait in the kernel still takes the real time.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use nix::unistd::Pid as Tid;
use object::{Object, ObjectSymbol};
use outboard_profile::process_table::Pid;

use super::stepper::Step;

/// By how much a step slows a processor down, about. The clock runs so much slower, so that a server which looks for
/// events for some µs before it sleeps does not look forever.
const SLOWNESS: u32 = 10_000;

/// The clock of all processes.
#[derive(Default)]
pub(super) struct Clock {
    behind: Duration,
    stopped: Option<Instant>,
    functions: HashMap<Pid, Functions>,
    /// The calls that run.
    calls: HashMap<Tid, Call>,
}

/// Addresses in a process.
struct Functions {
    clock_gettime: Option<u64>,
    gettimeofday: Option<u64>,
}

#[derive(Clone, Copy)]
struct Call {
    returns_to: u64,
    /// Where its result is: seconds, and a fraction.
    result: u64,
    fractions_per_second: i128,
}

impl Clock {
    /// Nearly stops it.
    pub(super) fn stop(&mut self) {
        self.stopped = Some(Instant::now());
    }

    /// Lets it run again.
    pub(super) fn resume(&mut self) {
        self.behind = self.behind();
        self.stopped = None;
    }

    fn behind(&self) -> Duration {
        let elapsed = self.stopped.map_or(Duration::ZERO, |since| since.elapsed());
        self.behind + elapsed - elapsed / SLOWNESS
    }

    /// Sees an instruction that is about to be executed: corrects a result when its call has returned.
    pub(super) fn see(&mut self, step: &Step) {
        let functions =
            self.functions.entry(step.process).or_insert_with(|| Functions::of(step.process));
        let registers = &step.registers;
        let (result, fractions_per_second) = match Some(step.address) {
            at if at == functions.clock_gettime => (registers.rsi, 1_000_000_000),
            at if at == functions.gettimeofday => (registers.rdi, 1_000_000),
            _ => return self.correct(step),
        };
        let mut returns_to = [0; 8];
        if result != 0 && step.memory.read_exact_at(&mut returns_to, registers.rsp).is_ok() {
            let returns_to = u64::from_le_bytes(returns_to);
            self.calls.insert(step.thread, Call { returns_to, result, fractions_per_second });
        }
    }

    fn correct(&mut self, step: &Step) {
        let Some(call) = self.calls.get(&step.thread) else { return };
        if call.returns_to != step.address {
            return;
        }
        let Call { result, fractions_per_second, .. } = *call;
        self.calls.remove(&step.thread);
        let mut words = [[0; 8]; 2];
        if step.memory.read_exact_at(words.as_flattened_mut(), result).is_err() {
            return;
        }
        let [seconds, fraction] = words.map(i64::from_le_bytes).map(i128::from);
        let behind = self.behind().as_nanos() as i128 * fractions_per_second / 1_000_000_000;
        let time = seconds * fractions_per_second + fraction - behind;
        let time = [time.div_euclid(fractions_per_second), time.rem_euclid(fractions_per_second)];
        let words = time.map(|word| (word as i64).to_le_bytes());
        let _ = step.memory.write_all_at(words.as_flattened(), result);
    }
}

impl Functions {
    fn of(process: Pid) -> Self {
        let none = Self { clock_gettime: None, gettimeofday: None };
        let Some((start, image)) = image(process) else { return none };
        let Ok(file) = object::File::parse(&*image) else { return none };
        let find = |name: &str| {
            let mut symbols = file.dynamic_symbols();
            let symbol = symbols.find(|symbol| symbol.name() == Ok(name))?;
            Some(start + symbol.address())
        };
        Self {
            clock_gettime: find("__vdso_clock_gettime"),
            gettimeofday: find("__vdso_gettimeofday"),
        }
    }
}

/// The vDSO of a process and its address.
fn image(process: Pid) -> Option<(u64, Vec<u8>)> {
    let maps = fs::read_to_string(format!("/proc/{process}/maps")).ok()?;
    let line = maps.lines().find(|line| line.ends_with("[vdso]"))?;
    let (start, end) = line.split_ascii_whitespace().next()?.split_once('-')?;
    let hex = |text| u64::from_str_radix(text, 16).ok();
    let (start, end) = (hex(start)?, hex(end)?);
    let mut image = vec![0; (end - start) as usize];
    let memory = fs::File::open(format!("/proc/{process}/mem")).ok()?;
    memory.read_exact_at(&mut image, start).ok()?;
    Some((start, image))
}
