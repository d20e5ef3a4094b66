//! The device's assembly, interpreted: each chain of `cuda/chains.cuh` against its
//! definition in `cuda/limbs.hpp`.
//!
//! The self-test on the device decides; this test needs no device. It reads the source,
//! so it sees each operand at its place. Of PTX it knows only the dozen instructions
//! that are used: 32-bit sums and products with a carry flag.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::HashMap;

const SOURCE: &str = include_str!("../cuda/chains.cuh");

/// The registers of a statement, by the name of the variable.
type Variables = HashMap<String, u32>;

/// One asm statement.
struct Statement {
    instructions: Vec<String>,
    outputs: Vec<String>,
    inputs: Vec<String>,
}

/// Returns the statement of function `name` in the specialization for `limbs` limbs.
fn statement(limbs: usize, name: &str) -> Statement {
    let (_, chains) = SOURCE
        .split_once(&format!("struct Chains<{limbs}> {{"))
        .unwrap();
    let (_, body) = chains.split_once(&format!(" {name}(")).unwrap();
    let (_, text) = body.split_once("asm(").unwrap();
    let (text, _) = text.split_once(");").unwrap();
    // Colons separate code, outputs and inputs, and occur nowhere else.
    let parts: Vec<_> = text.split(':').collect();
    let [code, outputs, inputs] = parts[..] else {
        panic!("{name} has {} parts", parts.len());
    };
    let code: String = code.split('"').skip(1).step_by(2).collect();
    let instructions = code.split(';').map(|line| line.trim().to_owned());
    Statement {
        instructions: instructions.filter(|line| !line.is_empty()).collect(),
        outputs: operands(outputs),
        inputs: operands(inputs),
    }
}

/// Returns `"+&r"(sum[0]), "=&r"(carry)` as `+&sum[0]` and `=&carry`.
fn operands(text: &str) -> Vec<String> {
    let operand = |text: &str| {
        let (constraint, variable) = text.trim().split_once('(').unwrap();
        let variable = variable.strip_suffix(')').unwrap().trim_start_matches('*');
        constraint.trim_matches('"').replace('r', "") + variable
    };
    text.split(',').map(operand).collect()
}

/// Runs a statement like a processor that writes each output at once.
fn run(statement: &Statement, variables: &mut Variables) {
    let names = statement.outputs.iter().chain(&statement.inputs);
    let names: Vec<_> = names
        .map(|name| name.trim_start_matches(['+', '=', '&']))
        .collect();
    let mut registers: Vec<Option<u32>> = names
        .iter()
        .zip(statement.outputs.iter().chain(&statement.inputs))
        // An operand that is only written has no value before.
        .map(|(name, text)| (!text.starts_with('=')).then(|| variables[*name]))
        .collect();
    let mut carry = None;
    for instruction in &statement.instructions {
        step(instruction, &mut registers, &mut carry);
    }
    for (name, value) in names.iter().zip(&registers).take(statement.outputs.len()) {
        variables.insert((*name).to_owned(), value.unwrap());
    }
}

/// Runs one instruction. The carry flag has no value before an instruction has written
/// it.
fn step(instruction: &str, registers: &mut [Option<u32>], carry: &mut Option<bool>) {
    let (name, operands) = instruction.split_once(' ').unwrap();
    let operands: Vec<_> = operands.split(',').map(str::trim).collect();
    let register = |text: &str| text.strip_prefix('%').map(|n| n.parse::<usize>().unwrap());
    let value = |text: &str| match register(text) {
        Some(register) => i64::from(registers[register].unwrap()),
        None => text.parse().unwrap(),
    };
    let name = name.strip_suffix(".u32").unwrap();
    let (name, sets_carry) = match name.strip_suffix(".cc") {
        Some(name) => (name, true),
        None => (name, false),
    };
    let (name, half) = match name.split_once('.') {
        Some((name, half)) => (name, Some(half)),
        None => (name, None),
    };
    let (name, takes_carry) = match name.strip_suffix('c') {
        Some(name) => (name, true),
        None => (name, false),
    };
    let flag = if takes_carry {
        i64::from(carry.unwrap())
    } else {
        0
    };
    let result = match (name, half) {
        ("add", None) => value(operands[1]) + value(operands[2]) + flag,
        ("sub", None) => value(operands[1]) - value(operands[2]) - flag,
        ("mad", Some(half)) => {
            let [a, b] = [1, 2].map(|k| u64::try_from(value(operands[k])).unwrap());
            let product = match half {
                "lo" => (a * b) & u64::from(u32::MAX),
                "hi" => (a * b) >> 32,
                _ => panic!("{instruction}"),
            };
            i64::try_from(product).unwrap() + value(operands[3]) + flag
        }
        _ => panic!("{instruction}"),
    };
    if sets_carry {
        *carry = Some(!(0..=i64::from(u32::MAX)).contains(&result));
    }
    registers[register(operands[0]).unwrap()] =
        Some(u32::try_from(result & i64::from(u32::MAX)).unwrap());
}

/// Returns limbs that carry often.
fn limbs(count: usize, rng: &mut ChaCha8Rng) -> Vec<u32> {
    let mut limb = || match rng.gen_range(0..4) {
        0 => 0,
        1 => u32::MAX,
        _ => rng.r#gen(),
    };
    (0..count).map(|_| limb()).collect()
}

fn assign(variables: &mut Variables, name: &str, values: &[u32]) {
    for (at, value) in values.iter().enumerate() {
        variables.insert(format!("{name}[{at}]"), *value);
    }
}

fn read(variables: &Variables, name: &str, count: usize) -> Vec<u32> {
    (0..count)
        .map(|at| variables[&format!("{name}[{at}]")])
        .collect()
}

/// Returns the sum of limbs, each at a place, in `count` limbs and the carry.
fn total(count: usize, parts: &[(usize, u64)]) -> (Vec<u32>, u64) {
    let mut limbs = vec![0u32; count];
    let mut over = 0;
    for &(place, part) in parts {
        let mut carry = part;
        for limb in &mut limbs[place..] {
            let sum = u64::from(*limb) + (carry & u64::from(u32::MAX));
            *limb = u32::try_from(sum & u64::from(u32::MAX)).unwrap();
            carry = (carry >> 32) + (sum >> 32);
        }
        over += carry;
    }
    (limbs, over)
}

fn at_places(values: &[u32]) -> Vec<(usize, u64)> {
    values.iter().map(|v| u64::from(*v)).enumerate().collect()
}

/// Returns a[0]·b, a[2]·b and so on, each two limbs above the one before.
fn products(a: &[u32], b: u32) -> Vec<(usize, u64)> {
    let pairs = a.iter().enumerate().step_by(2);
    pairs
        .map(|(k, a)| (k, u64::from(*a) * u64::from(b)))
        .collect()
}

fn for_random_cases(test: impl Fn(usize, &mut ChaCha8Rng)) {
    let mut rng = ChaCha8Rng::seed_from_u64(30);
    for n in [8, 12] {
        for _ in 0..500 {
            test(n, &mut rng);
        }
    }
}

/// A chain writes its first outputs before it has read its last inputs. So no input may
/// have the register of an output, whatever the compiler knows of their values.
#[test]
fn outputs_share_no_register() {
    for n in [8, 12] {
        for name in ["add_products", "shift_add_products", "add", "subtract"] {
            let outputs = statement(n, name).outputs;
            assert_eq!(outputs.len(), n + 1);
            for output in outputs {
                let clobber = output.strip_prefix(['+', '=']).unwrap();
                assert!(clobber.starts_with('&'), "{name} of {n}: {output}");
            }
        }
    }
}

#[test]
fn adds_products() {
    for_random_cases(|n, rng| {
        let (sum, a, b) = (limbs(n, rng), limbs(n, rng), limbs(1, rng)[0]);
        let mut variables = Variables::from([("b".to_owned(), b)]);
        assign(&mut variables, "sum", &sum);
        assign(&mut variables, "a", &a);
        run(&statement(n, "add_products"), &mut variables);
        let expected = total(n, &[at_places(&sum), products(&a, b)].concat());
        assert_eq!(read(&variables, "sum", n), expected.0);
        assert_eq!(u64::from(variables["carry"]), expected.1);
    });
}

#[test]
fn shifts_and_adds_products() {
    for_random_cases(|n, rng| {
        let (mut sum, a, b) = (limbs(n, rng), limbs(n, rng), limbs(1, rng)[0]);
        let low = limbs(1, rng)[0];
        sum[0] = 0;
        // The result must have room, as in a Montgomery product.
        let a: Vec<_> = a.iter().map(|a| a >> 1).collect();
        let mut variables = Variables::from([("b".to_owned(), b), ("low".to_owned(), low)]);
        assign(&mut variables, "sum", &sum);
        assign(&mut variables, "a", &a);
        run(&statement(n, "shift_add_products"), &mut variables);
        let lowest = u64::from(low) + u64::from(sum[1]);
        let parts = [
            at_places(&sum[2..]),
            products(&a, b),
            vec![(0, lowest >> 32)],
        ];
        let expected = total(n, &parts.concat());
        assert_eq!(u64::from(variables["low"]), lowest & u64::from(u32::MAX));
        assert_eq!((read(&variables, "shifted", n), 0), expected);
    });
}

#[test]
fn adds_and_subtracts() {
    for_random_cases(|n, rng| {
        let (a, b) = (limbs(n, rng), limbs(n, rng));
        let mut variables = Variables::new();
        assign(&mut variables, "a", &a);
        assign(&mut variables, "b", &b);
        let mut back = variables.clone();
        run(&statement(n, "add"), &mut variables);
        let expected = total(n, &[at_places(&a), at_places(&b)].concat());
        assert_eq!(
            (read(&variables, "a", n), u64::from(variables["carry"])),
            expected
        );
        // Subtracting again gives a borrow where there was a carry.
        run(&statement(n, "subtract"), &mut variables);
        assert_eq!(read(&variables, "a", n), a);
        let borrow = if expected.1 == 0 { 0 } else { u32::MAX };
        assert_eq!(variables["carry"], borrow);
        run(&statement(n, "subtract"), &mut back);
        let is_less = a.iter().rev().lt(b.iter().rev());
        assert_eq!(back["carry"], if is_less { u32::MAX } else { 0 });
    });
}
