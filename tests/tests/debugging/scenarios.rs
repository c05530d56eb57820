//! What developers do with a debugger, each in all modes: the same code is stopped, looked at and changed.

use super::stage::{DEBUGGED, Stage, USUAL};
use outboard_e2e::{Connection, DebugSession, Process, Request, attribute, base64};

/// A name, and what is done.
type Scenario = (&'static str, fn(&Stage));

/// All of them.
pub(crate) const SCENARIOS: [Scenario; 32] = [
    ("cookie", cookie),
    ("cookie among others", cookie_among_others),
    ("parameter", parameter),
    ("parameter that starts a session", parameter_of_session_start),
    ("header", header),
    ("form", form),
    ("two breakpoints", two_breakpoints),
    ("step into", step_into),
    ("step over", step_over),
    ("step out", step_out),
    ("condition", condition),
    ("hit count", hit_count),
    ("disabled and removed", disabled_and_removed),
    ("call of a function", call_of_a_function),
    ("return of a function", return_of_a_function),
    ("exception", exception),
    ("any exception", any_exception),
    ("uncaught exception", uncaught_exception),
    ("exit", exit),
    ("evaluate", evaluate),
    ("variables", variables),
    ("a variable is changed", variable_is_changed),
    ("stack", stack),
    ("source", source),
    ("output", output),
    ("path mapping", path_mapping),
    ("two browsers", two_browsers),
    ("disconnect", disconnect),
    ("detach", detach),
    ("stop", stop),
    ("kill", kill),
    ("the browser leaves", browser_leaves),
];

/// Lines of the fixture.
const SUM: u32 = 4;
const THROW: u32 = 10;
const NAME: u32 = 15;
const TOTAL: u32 = 16;
const BOATS: u32 = 17;
const SEEN: u32 = 19;
const FAILING: u32 = 22;

/// A request whose code stops at this line.
#[track_caller]
fn stopped(stage: &Stage, line: u32) -> (Connection, DebugSession) {
    let waiting = stage.debugged("/");
    let mut session = stage.debugger.accept();
    session.break_at(&stage.page(), line);
    assert_eq!(session.stops("run"), line);
    (waiting, session)
}

#[track_caller]
fn answers(waiting: &mut Connection, status: u16, text: &str) {
    let answer = waiting.response().unwrap_or_else(|error| panic!("no answer: {error}"));
    assert_eq!((answer.status, answer.text().as_str()), (status, text));
}

#[track_caller]
fn finishes((mut waiting, session): (Connection, DebugSession)) {
    session.finish();
    answers(&mut waiting, 200, DEBUGGED);
}

#[track_caller]
fn begins_by(stage: &Stage, request: &Request) {
    let mut waiting = stage.begin(request);
    let mut session = stage.debugger.accept();
    session.break_at(&stage.page(), SUM);
    assert_eq!(session.stops("run"), SUM);
    session.finish();
    answers(&mut waiting, 200, DEBUGGED);
}

fn cookie(stage: &Stage) {
    begins_by(stage, &Request::get("/").header("Cookie", "XDEBUG_SESSION=PHPSTORM"));
}

fn cookie_among_others(stage: &Stage) {
    begins_by(stage, &Request::get("/").header("Cookie", "a=1; XDEBUG_TRIGGER=1;b=2"));
}

fn parameter(stage: &Stage) {
    begins_by(stage, &Request::get("/?a=1&XDEBUG_TRIGGER=1"));
}

fn parameter_of_session_start(stage: &Stage) {
    begins_by(stage, &Request::get("/?XDEBUG_SESSION_START=VSCODE"));
}

fn header(stage: &Stage) {
    begins_by(stage, &Request::get("/").header("Xdebug-Trigger", "1"));
}

fn form(stage: &Stage) {
    let request = Request::form("/?XDEBUG_TRIGGER", &[("name", "otto")]);
    let mut waiting = stage.begin(&request);
    let mut session = stage.debugger.accept();
    session.break_at(&stage.page(), TOTAL);
    session.stops("run");
    assert_eq!(session.value("strlen($name)"), 4);
    session.finish();
    answers(&mut waiting, 200, &DEBUGGED.replace("nobody", "otto"));
}

fn two_breakpoints(stage: &Stage) {
    let (waiting, mut session) = stopped(stage, NAME);
    session.break_at(&stage.page(), SEEN);
    assert_eq!([(); 2].map(|()| session.stops("run")), [SEEN, SEEN]);
    finishes((waiting, session));
}

fn step_into(stage: &Stage) {
    let (waiting, mut session) = stopped(stage, TOTAL);
    assert_eq!([(); 2].map(|()| session.stops("step_into")), [SUM, SUM + 1]);
    finishes((waiting, session));
}

fn step_over(stage: &Stage) {
    let (waiting, mut session) = stopped(stage, NAME);
    assert_eq!([(); 2].map(|()| session.stops("step_over")), [TOTAL, BOATS]);
    finishes((waiting, session));
}

fn step_out(stage: &Stage) {
    let (waiting, mut session) = stopped(stage, SUM);
    let line = session.stops("step_out");
    assert!([TOTAL, BOATS].contains(&line), "{line}");
    finishes((waiting, session));
}

/// Has the code go on from its start with a breakpoint of this kind.
#[track_caller]
fn with_breakpoint(stage: &Stage, target: &str, breakpoint: &str) -> (Connection, DebugSession) {
    let waiting = stage.debugged(target);
    let mut session = stage.debugger.accept();
    let set = session.command(&format!("breakpoint_set {breakpoint}"));
    assert!(attribute(&set, "id").is_some(), "{set}");
    (waiting, session)
}

fn condition(stage: &Stage) {
    let condition = base64(b"$index === 1");
    let breakpoint = format!("-t conditional -f file://{} -n {SEEN} -- {condition}", stage.page());
    let (waiting, mut session) = with_breakpoint(stage, "/", &breakpoint);
    assert_eq!(session.stops("run"), SEEN);
    assert_eq!(session.value("$index"), 1);
    finishes((waiting, session));
}

fn hit_count(stage: &Stage) {
    let breakpoint = format!("-t line -f file://{} -n {SEEN} -h 2 -o ==", stage.page());
    let (waiting, mut session) = with_breakpoint(stage, "/", &breakpoint);
    assert_eq!(session.stops("run"), SEEN);
    assert_eq!(session.value("$index"), 1);
    finishes((waiting, session));
}

fn disabled_and_removed(stage: &Stage) {
    let (waiting, mut session) = stopped(stage, NAME);
    let [disabled, removed] = [SUM, SEEN].map(|line| session.break_at(&stage.page(), line));
    session.command(&format!("breakpoint_update -d {disabled} -s disabled"));
    session.command(&format!("breakpoint_remove -d {removed}"));
    let list = session.command("breakpoint_list");
    assert_eq!(
        (list.matches("<breakpoint ").count(), list.matches("disabled").count()),
        (2, 1),
        "{list}"
    );
    finishes((waiting, session));
}

fn call_of_a_function(stage: &Stage) {
    let (waiting, mut session) = with_breakpoint(stage, "/", "-t call -m add");
    assert_eq!(attribute(&session.command("run"), "status").as_deref(), Some("break"));
    assert!(session.command("stack_get -d 0").contains("where=\"add\""));
    finishes((waiting, session));
}

fn return_of_a_function(stage: &Stage) {
    let (waiting, mut session) = with_breakpoint(stage, "/", "-t return -m add");
    assert_eq!(attribute(&session.command("run"), "status").as_deref(), Some("break"));
    assert!(session.command("stack_get -d 0").contains("where=\"add\""));
    finishes((waiting, session));
}

fn exception(stage: &Stage) {
    let (waiting, mut session) = with_breakpoint(stage, "/", "-t exception -x LogicException");
    let found = session.command("run");
    assert!(
        found.contains("exception=\"LogicException\"") && found.contains("the mast is broken"),
        "{found}"
    );
    assert_eq!(attribute(&found, "lineno"), Some(THROW.to_string()));
    finishes((waiting, session));
}

fn any_exception(stage: &Stage) {
    let (waiting, mut session) = with_breakpoint(stage, "/", "-t exception -x *");
    assert_eq!(session.stops("run"), THROW);
    finishes((waiting, session));
}

fn uncaught_exception(stage: &Stage) {
    let (mut waiting, mut session) =
        with_breakpoint(stage, "/?end=throw", "-t exception -x DomainException");
    assert!(session.command("run").contains("no boat"));
    session.finish();
    assert_eq!(waiting.response().expect("the server answers").status, 500);
}

fn exit(stage: &Stage) {
    let mut waiting = stage.debugged("/?end=exit");
    stage.debugger.accept().finish();
    answers(&mut waiting, 200, "exit");
}

fn evaluate(stage: &Stage) {
    let (waiting, mut session) = stopped(stage, SUM);
    assert_eq!(session.value("$left * 10 + $right"), 23);
    assert_eq!(session.value("add(40, 2)"), 42);
    assert!(session.command(&format!("eval -- {}", base64(b"new"))).contains("<error"));
    finishes((waiting, session));
}

fn variables(stage: &Stage) {
    let (waiting, mut session) = stopped(stage, FAILING);
    let context = session.command("context_get");
    for name in ["$name", "$total", "$boats", "$index", "$colour"] {
        assert!(context.contains(&format!("fullname=\"{name}\"")), "{name}: {context}");
    }
    let sail = session.command("property_get -n $boats[\"sail\"]");
    assert!(sail.contains(&base64(b"red")) && sail.contains("numchildren=\"2\""), "{sail}");
    // Superglobals.
    let context = session.command("context_get -c 1");
    assert!(context.contains("$_SERVER") && context.contains("$_COOKIE"), "{context}");
    finishes((waiting, session));
}

fn variable_is_changed(stage: &Stage) {
    let (mut waiting, mut session) = stopped(stage, SUM);
    let set = session.command(&format!("property_set -n $left -t int -- {}", base64(b"40")));
    assert_eq!(attribute(&set, "success").as_deref(), Some("1"), "{set}");
    session.finish();
    answers(&mut waiting, 200, &DEBUGGED.replace('5', "43"));
}

fn stack(stage: &Stage) {
    let (waiting, mut session) = stopped(stage, SUM);
    let stack = session.command("stack_get");
    let frames: Vec<_> = stack
        .split("<stack ")
        .skip(1)
        .map(|frame| attribute(&format!(" {frame}"), "lineno"))
        .collect();
    assert_eq!(frames[..2], [Some(SUM.to_string()), Some(TOTAL.to_string())], "{stack}");
    finishes((waiting, session));
}

fn source(stage: &Stage) {
    let (waiting, mut session) = stopped(stage, SUM);
    let source = session.command(&format!("source -f file://{} -b {SUM} -e {SUM}", stage.page()));
    assert!(source.contains(&base64(b"    $sum = $left + $right;\n")), "{source}");
    finishes((waiting, session));
}

fn output(stage: &Stage) {
    let (mut waiting, mut session) = stopped(stage, SUM);
    session.command(&format!("eval -- {}", base64(b"print 'seen '")));
    session.finish();
    let answer = waiting.response().expect("the server answers").text();
    // What a handler returns replaces what it has printed.
    assert!([DEBUGGED.to_owned(), format!("seen {DEBUGGED}")].contains(&answer), "{answer}");
}

/// An IDE on another machine translates paths: Xdebug has those of the server, and no others.
fn path_mapping(stage: &Stage) {
    let mut waiting = stage.debugged("/");
    let mut session = stage.debugger.accept();
    let script = attribute(&session.init, "fileuri").expect("it names the script");
    let root = stage.site.docroot().path().display().to_string();
    assert!(script.starts_with(&format!("file://{root}/")), "{}", session.init);
    session.break_at("/srv/of-the-ide/page.php", SUM);
    let mapped = "/srv/of-the-ide/page.php".replace("/srv/of-the-ide", &root);
    session.break_at(&mapped, TOTAL);
    assert_eq!(session.stops("run"), TOTAL);
    let frame = session.command("stack_get -d 0");
    assert_eq!(attribute(&frame, "filename"), Some(format!("file://{root}/page.php")));
    session.finish();
    answers(&mut waiting, 200, DEBUGGED);
}

fn two_browsers(stage: &Stage) {
    let (mut first, mut one) = stopped(stage, SUM);
    let (mut second, mut two) = stopped(stage, SUM);
    assert_ne!(one.value("getmypid()"), two.value("getmypid()"));
    two.finish();
    answers(&mut second, 200, DEBUGGED);
    assert_eq!(one.stops("step_over"), SUM + 1);
    one.finish();
    answers(&mut first, 200, DEBUGGED);
}

fn disconnect(stage: &Stage) {
    let (mut waiting, session) = stopped(stage, SUM);
    drop(session);
    answers(&mut waiting, 200, DEBUGGED);
}

fn detach(stage: &Stage) {
    let (mut waiting, mut session) = stopped(stage, SUM);
    session.command("detach");
    drop(session);
    answers(&mut waiting, 200, DEBUGGED);
}

/// It ends the script, as exit does.
fn stop(stage: &Stage) {
    let (mut waiting, mut session) = stopped(stage, SUM);
    session.command("stop");
    drop(session);
    let answer = waiting.response().expect("the server answers");
    assert!([200, 500].contains(&answer.status) && answer.text() != USUAL, "{answer:?}");
}

fn kill(stage: &Stage) {
    let (mut waiting, mut session) = stopped(stage, SUM);
    let pid = session.value("getmypid()");
    Process::of(u32::try_from(pid).expect("a process id")).kill();
    assert_eq!(waiting.response().expect("the server answers").status, 502);
}

fn browser_leaves(stage: &Stage) {
    let (waiting, session) = stopped(stage, SUM);
    drop(waiting);
    session.finish();
}
