//! The footprint of a request: the cache lines, pages and system calls that its processes touch, exact on any
//! machine.
//!
//! Called by `outboard lab footprint`. At low rates a request finds the processor's caches cold, and then its
//! price is the lines that it touches, not its instructions (docs/decisions/0021). Every thread of a stack is
//! stepped, instruction by instruction, while one request is served. Invariant: a figure is the median of
//! requests that came one at a time, after the warm-up; what the kernel touches is not seen, and timers are
//! not counted.

mod access;
mod clock;
mod place;
mod stepper;
mod turns;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt::Write;
use std::io::{ErrorKind, Read, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::error::{Error, Result, ResultExt};
use crate::fixture::Fixture;
use crate::generator::{self, Task};
use crate::lab::Lab;
use crate::nginx;
use crate::outboard::{Outboard, Setup};
use crate::request_spec::RequestSpec;
use crate::site::{HELLO, Site};
use crate::stack::Stack;
use crate::variant::Variant;
use access::{Access, Accesses};
use outboard_profile::process_table::Pid;
use place::{Place, Places};
use stepper::{Step, Stepper};
use turns::{Part, Turns};

/// Bits of an address within a cache line of 64 bytes, and within a page of 4 KiB.
const LINE_BITS: u32 = 6;
const PAGE_BITS: u32 = 12;
/// The requests before the first that is stepped, at full speed: they fill caches and size pools.
const WARM_UP: u64 = 2_000;
/// Those that are stepped and not counted.
const SETTLING: usize = 2;
/// A stack is done with a request when none of its threads has executed an instruction for this long.
const QUIET: Duration = Duration::from_millis(20);
/// The longest that one request may take while it is stepped.
const DEADLINE: Duration = Duration::from_secs(60);

/// What is traced.
#[derive(Debug, Clone)]
pub struct Footprint {
    /// The variants with their texts.
    pub variants: Vec<(String, Variant)>,
    /// The directory that stacks and binaries serve.
    pub root: PathBuf,
    /// The requested path.
    pub path: String,
    /// The requests that are counted.
    pub requests: usize,
    /// The functions and other places to list for each process.
    pub places: usize,
}

/// One process of a variant, medians of all requests.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The variant.
    pub variant: String,
    /// The process's command name; those of the same name are one.
    pub process: String,
    /// Instructions in user space.
    pub instructions: usize,
    /// Distinct cache lines of code.
    pub code_lines: usize,
    /// Distinct cache lines of data.
    pub data_lines: usize,
    /// Distinct pages of both.
    pub pages: usize,
    /// System calls.
    pub system_calls: usize,
    /// Who touches lines first, of the last request: the place, lines of code, lines of data.
    pub places: Vec<(String, usize, usize)>,
}

/// Traces all variants, one after the other; without any, a hello of nginx and of Outboard's modes.
///
/// # Errors
/// A stack does not start or respond, or the system does not permit to trace it.
pub fn run(lab: &mut Lab, footprint: &Footprint) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (text, variant) in &footprint.variants {
        let (host, path) = variant.target(&footprint.path);
        let request = RequestSpec::get(path).to_host(host);
        let stack = variant.start(lab, "traced", &footprint.root)?;
        rows.extend(trace(lab, &stack, &request, footprint, text)?);
    }
    if footprint.variants.is_empty() {
        let request = RequestSpec::get(HELLO);
        for stack in hello_stacks(lab)? {
            rows.extend(trace(lab, &stack, &request, footprint, stack.name)?);
        }
    }
    Ok(rows)
}

/// nginx's own response, and a hello of each mode that is built.
fn hello_stacks(lab: &mut Lab) -> Result<Vec<Stack>> {
    let fixture = Fixture::unpack(lab, "worker", &[])?;
    let site = Site::write(lab)?;
    let worker = |name| Setup::worker(&fixture, "hello.php", 1, 1).named(name);
    let setups = [
        worker("outboard, worker"),
        worker("outboard, direct").with("direct = true\n"),
        Setup::classic(lab, &site.root).named("outboard, classic"),
    ];
    let outboards = Outboard::launch_all(lab, &setups)?;
    let stacks = outboards.into_iter().map(|outboard| outboard.stack);
    Ok(std::iter::once(nginx::with_return(lab)?).chain(stacks).collect())
}

/// The rows of a stack.
fn trace(
    lab: &mut Lab,
    stack: &Stack,
    request: &RequestSpec,
    plan: &Footprint,
    text: &str,
) -> Result<Vec<Row>> {
    lab.progress(text);
    let warm_up = generator::run_count(&Task::new(stack.address, request, 1), WARM_UP)?;
    if warm_up.statuses.get(&200) != Some(&WARM_UP) {
        let what = format!("not only status 200 for {}: {:?}", request.path(), warm_up.statuses);
        return Err(Error::Unexpected { who: text.into(), what });
    }
    stack.settle();
    let mut client = Client::connect(stack)?;
    let mut stepper = Stepper::attach(&stack.group.pids())?;
    let mut observer = Observer::default();
    let bytes = request.bytes();
    let mut next = |_| step_request(&mut stepper, &mut observer, &mut client, &bytes, text);
    let requests = (0..SETTLING + plan.requests).map(&mut next).collect::<Result<Vec<_>>>()?;
    let counted = &requests[SETTLING..];
    let names: BTreeSet<&String> = counted.iter().flat_map(Traces::keys).collect();
    Ok(names.into_iter().map(|name| row(text, name, counted, plan.places)).collect())
}

/// The traces of one request, by the name of the process.
type Traces = HashMap<String, Trace>;

/// What the processes of one name touched for a request.
#[derive(Debug, Clone, Default)]
struct Trace {
    instructions: usize,
    system_calls: usize,
    /// Lines of code and of data, each with the place that touched it first.
    code: HashMap<u64, Place>,
    data: HashMap<u64, Place>,
}

impl Trace {
    fn pages(&self) -> usize {
        let lines = self.code.keys().chain(self.data.keys());
        lines.map(|line| line >> (PAGE_BITS - LINE_BITS)).collect::<HashSet<_>>().len()
    }
}

/// What is remembered of the stack between requests.
#[derive(Default)]
struct Observer {
    accesses: Accesses,
    turns: Turns,
    /// What threads have touched in a turn of which it is not known yet whether it is for a request.
    held: HashMap<nix::unistd::Pid, Vec<(u64, Access)>>,
    places: HashMap<Pid, Places>,
}

impl Observer {
    /// Returns whether the stack is idle.
    fn add(&mut self, traces: &mut HashMap<Pid, Trace>, step: &Step) -> bool {
        let access = self.accesses.of(step);
        let held = self.held.entry(step.thread).or_default();
        let part = self.turns.part(step, access.is_system_call);
        if matches!(part, Part::NewTurn) {
            held.clear();
        }
        held.push((step.address, access));
        if !matches!(part, Part::Request) {
            return self.turns.are_idle();
        }
        let trace = traces.entry(step.process).or_default();
        let places = self.places.entry(step.process).or_insert_with(|| Places::of(step.process));
        for (address, access) in held.drain(..) {
            trace.instructions += usize::from(!access.is_repetition);
            trace.system_calls += usize::from(access.is_system_call);
            let mut touch = |lines: &mut HashMap<u64, Place>, line| {
                lines.entry(line).or_insert_with(|| places.find(address));
            };
            access.code.for_each(|line| touch(&mut trace.code, line));
            access.data.iter().for_each(|&line| touch(&mut trace.data, line));
        }
        false
    }
}

fn step_request(
    stepper: &mut Stepper,
    observer: &mut Observer,
    client: &mut Client,
    request: &[u8],
    text: &str,
) -> Result<Traces> {
    let mut traces = HashMap::new();
    let deadline = Instant::now() + DEADLINE;
    stepper.clock.stop();
    client.send(request)?;
    loop {
        stepper.run_until_quiet(QUIET, deadline, &mut |step| observer.add(&mut traces, &step))?;
        if client.has_response()? {
            break;
        }
        if Instant::now() > deadline {
            let what = "no response while it was stepped".into();
            return Err(Error::Unexpected { who: text.into(), what });
        }
    }
    stepper.clock.resume();
    let mut by_name = Traces::new();
    for (process, trace) in traces {
        let sum = by_name.entry(stepper.name(process)).or_default();
        sum.instructions += trace.instructions;
        sum.system_calls += trace.system_calls;
        sum.code.extend(trace.code);
        sum.data.extend(trace.data);
    }
    Ok(by_name)
}

fn row(variant: &str, process: &str, requests: &[Traces], places: usize) -> Row {
    let traces: Vec<&Trace> = requests.iter().filter_map(|traces| traces.get(process)).collect();
    let median = |figure: fn(&Trace) -> usize| {
        let mut figures: Vec<usize> = traces.iter().map(|trace| figure(trace)).collect();
        figures.sort_unstable();
        figures.get(figures.len() / 2).copied().unwrap_or(0)
    };
    Row {
        variant: variant.into(),
        process: process.into(),
        instructions: median(|trace| trace.instructions),
        code_lines: median(|trace| trace.code.len()),
        data_lines: median(|trace| trace.data.len()),
        pages: median(Trace::pages),
        system_calls: median(|trace| trace.system_calls),
        places: traces.last().map_or_else(Vec::new, |trace| first_touches(trace, places)),
    }
}

/// The places that touch most lines first.
fn first_touches(trace: &Trace, count: usize) -> Vec<(String, usize, usize)> {
    let mut places = BTreeMap::<&str, (usize, usize)>::new();
    trace.code.values().for_each(|place| places.entry(place).or_default().0 += 1);
    trace.data.values().for_each(|place| places.entry(place).or_default().1 += 1);
    let mut places: Vec<_> =
        places.into_iter().map(|(place, (code, data))| (place.to_owned(), code, data)).collect();
    places.sort_by_key(|(_, code, data)| std::cmp::Reverse(code + data));
    places.truncate(count);
    places
}

/// A line for each process, its places below it.
pub fn table(rows: &[Row]) -> String {
    let mut table =
        String::from("   lines     code     data    pages  instructions  system calls  process\n");
    for row in rows {
        let lines = row.code_lines + row.data_lines;
        let Row { code_lines, data_lines, pages, instructions, system_calls, .. } = row;
        let _ = writeln!(
            table,
            "{lines:>8} {code_lines:>8} {data_lines:>8} {pages:>8} {instructions:>13} {system_calls:>13}  {}: {}",
            row.variant, row.process
        );
        for (place, code, data) in &row.places {
            let _ = writeln!(table, "{:>8} {code:>8} {data:>8}    {place}", code + data);
        }
    }
    table
}

/// The connection whose requests are stepped.
struct Client {
    socket: TcpStream,
}

impl Client {
    fn connect(stack: &Stack) -> Result<Self> {
        let context = || format!("connect to {}", stack.address);
        let socket = TcpStream::connect(stack.address).context(context)?;
        socket.set_nonblocking(true).context(context)?;
        thread::sleep(QUIET);
        Ok(Self { socket })
    }

    fn send(&mut self, request: &[u8]) -> Result<()> {
        self.socket.write_all(request).context(|| "send a request".into())
    }

    /// Whether bytes of a response have come; takes them. The stack is quiet, so they are all.
    fn has_response(&mut self) -> Result<bool> {
        let mut received = false;
        let mut buffer = [0; 65536];
        loop {
            match self.socket.read(&mut buffer) {
                Ok(0) => {
                    let what = "closed the connection instead of a response".into();
                    return Err(Error::Unexpected { who: "the stack".into(), what });
                }
                Ok(_) => received = true,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(received),
                Err(error) => return Err(error).context(|| "read a response".into()),
            }
        }
    }
}
