//! [`Accesses`]: which cache lines an instruction touches, decoded once for each instruction of a process.
//!
//! Called by [`super`] for each step. Invariant: addresses come from the registers before the instruction
//! is executed; vector gathers are not resolved.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::os::unix::fs::FileExt;

use iced_x86::{
    Code, Decoder, DecoderOptions, Instruction, InstructionInfoFactory, OpAccess, Register,
    UsedMemory,
};
use nix::libc::user_regs_struct;
use outboard_profile::process_table::Pid;

use super::LINE_BITS;
use super::stepper::Step;

/// The longest instruction (Intel SDM, volume 2, 2.3.11).
const INSTRUCTION_BYTES: usize = 15;

/// The instructions that were decoded already.
#[derive(Default)]
pub(super) struct Accesses {
    decoded: HashMap<(Pid, u64), Decoded>,
    /// The address that the thread executed before, to tell repetitions of `rep movs`.
    previous: HashMap<nix::unistd::Pid, u64>,
}

struct Decoded {
    instruction: Instruction,
    memory: Vec<UsedMemory>,
}

/// What one instruction touches.
pub(super) struct Access {
    /// The lines of its code.
    pub(super) code: RangeInclusive<u64>,
    /// The lines of its operands.
    pub(super) data: Vec<u64>,
    /// It is the next round of an instruction with a `rep` prefix.
    pub(super) is_repetition: bool,
    /// It calls the kernel.
    pub(super) is_system_call: bool,
}

impl Accesses {
    /// What the instruction at which a thread has stopped is about to touch.
    pub(super) fn of(&mut self, step: &Step) -> Access {
        let decoded =
            self.decoded.entry((step.process, step.address)).or_insert_with(|| Decoded::read(step));
        let instruction = &decoded.instruction;
        let repeats = instruction.has_rep_prefix() || instruction.has_repne_prefix();
        let before = self.previous.insert(step.thread, step.address);
        let end = step.address + instruction.len().max(1) as u64 - 1;
        Access {
            code: line(step.address)..=line(end),
            data: decoded.memory.iter().flat_map(|memory| lines(memory, &step.registers)).collect(),
            is_repetition: repeats && before == Some(step.address),
            is_system_call: instruction.code() == Code::Syscall,
        }
    }
}

impl Decoded {
    fn read(step: &Step) -> Self {
        let mut bytes = [0; INSTRUCTION_BYTES];
        let length = step.memory.read_at(&mut bytes, step.address).unwrap_or(0);
        Self::new(&bytes[..length], step.address)
    }

    fn new(bytes: &[u8], address: u64) -> Self {
        let instruction = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE).decode();
        let mut factory = InstructionInfoFactory::new();
        let touched = |memory: &&UsedMemory| memory.access() != OpAccess::NoMemAccess;
        let memory = factory.info(&instruction).used_memory().iter().filter(touched).copied();
        Self { memory: memory.collect(), instruction }
    }
}

fn line(address: u64) -> u64 {
    address >> LINE_BITS
}

fn lines(memory: &UsedMemory, registers: &user_regs_struct) -> impl Iterator<Item = u64> {
    let start = memory.virtual_address(0, |register, _, _| value(register, registers));
    let last = memory.memory_size().size().max(1) as u64 - 1;
    start.into_iter().flat_map(move |start| line(start)..=line(start.wrapping_add(last)))
}

/// The value of a register of an address.
fn value(register: Register, registers: &user_regs_struct) -> Option<u64> {
    let full = match register.full_register() {
        Register::RAX => registers.rax,
        Register::RBX => registers.rbx,
        Register::RCX => registers.rcx,
        Register::RDX => registers.rdx,
        Register::RSI => registers.rsi,
        Register::RDI => registers.rdi,
        Register::RBP => registers.rbp,
        Register::RSP => registers.rsp,
        Register::R8 => registers.r8,
        Register::R9 => registers.r9,
        Register::R10 => registers.r10,
        Register::R11 => registers.r11,
        Register::R12 => registers.r12,
        Register::R13 => registers.r13,
        Register::R14 => registers.r14,
        Register::R15 => registers.r15,
        Register::FS => registers.fs_base,
        Register::GS => registers.gs_base,
        Register::CS | Register::DS | Register::ES | Register::SS => 0,
        _ => return None,
    };
    Some(if register.size() == 4 { full & u64::from(u32::MAX) } else { full })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(code: &[u8], registers: user_regs_struct) -> Vec<u64> {
        let decoded = Decoded::new(code, 0x1000);
        decoded.memory.iter().flat_map(|memory| lines(memory, &registers)).collect()
    }

    fn registers() -> user_regs_struct {
        user_regs_struct {
            r15: 0,
            r14: 0,
            r13: 0,
            r12: 0,
            rbp: 0,
            rbx: 0x40 * 10,
            r11: 0,
            r10: 0,
            r9: 0,
            r8: 0,
            rax: 0,
            rcx: 2,
            rdx: 0,
            rsi: 0,
            rdi: 0,
            orig_rax: 0,
            rip: 0,
            cs: 0,
            eflags: 0,
            rsp: 0x40 * 20,
            ss: 0,
            fs_base: 0x40 * 30,
            gs_base: 0,
            ds: 0,
            es: 0,
            fs: 0,
            gs: 0,
        }
    }

    #[test]
    fn operands_are_addressed_by_registers() {
        // mov rax, [rbx+rcx*8+48]: eight bytes from the last of line 10 and none of the next.
        assert_eq!(data(&[0x48, 0x8b, 0x44, 0xcb, 0x28], registers()), [10]);
        // The same 12 bytes further: across two lines.
        assert_eq!(data(&[0x48, 0x8b, 0x44, 0xcb, 0x2c], registers()), [10, 11]);
        // mov rax, fs:[0x40]
        assert_eq!(data(&[0x64, 0x48, 0x8b, 0x04, 0x25, 0x40, 0, 0, 0], registers()), [31]);
        // push rax: below the stack pointer.
        assert_eq!(data(&[0x50], registers()), [19]);
    }

    #[test]
    fn addresses_that_are_only_computed_touch_nothing() {
        // lea rax, [rbx+8]; nop dword [rbx]
        assert_eq!(data(&[0x48, 0x8d, 0x43, 0x08], registers()).len(), 0);
        assert_eq!(data(&[0x0f, 0x1f, 0x03], registers()).len(), 0);
    }
}
