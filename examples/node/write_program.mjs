// Writes a program that reads digits, knowing nothing of Oarlock but its .proto: node write_program.mjs digits.program
//
// float32[n, 64] -> linear -> tanh -> linear -> cross entropy -> mean. Python then trains it: see ../trained_from_node.py.
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import protobuf from "protobufjs";

const here = dirname(fileURLToPath(import.meta.url));
const proto = join(here, "..", "..", "src", "oarlock", "proto", "program.proto");
const root = protobuf.loadSync(proto);
const ProgramFile = root.lookupType("oarlock.ProgramFile");
const { FLOAT32, INT64 } = root.lookupEnum("oarlock.DType").values;

const block = { name: "main", inputs: [], outputs: [], vars: [], ops: [] };

// A size is a number, or a name that has one value in each run.
const shapeOf = (sizes) => ({ sizes: sizes.map((size) => (typeof size === "number" ? { number: size } : { symbol: size })) });

function declare(name, dtype, sizes, flags = {}) {
  block.vars.push({ name, dtype, shape: shapeOf(sizes), ...flags });
  return name;
}

function input(name, dtype, sizes) {
  block.inputs.push(name);
  return declare(name, dtype, sizes, { stopGradient: true });
}

function parameter(name, sizes, initializer) {
  return declare(name, FLOAT32, sizes, { persistable: true, parameter: true, trainable: true, initializer });
}

const zeros = { type: "constant", attributes: [{ name: "value", float: 0 }] };

// Glorot and Bengio, 2010.
function xavier(rows, columns) {
  const bound = Math.sqrt(6 / (rows + columns));
  return { type: "uniform", attributes: [{ name: "high", float: bound }, { name: "low", float: -bound }] };
}

const slots = (named) => Object.entries(named).map(([name, variable]) => ({ name, vars: [variable] }));

function op(type, inputs, outputs, attributes = []) {
  block.ops.push({ type, inputs: slots(inputs), outputs: slots(outputs), attributes });
  return Object.values(outputs)[0];
}

function fc(name, x, rows, columns) {
  const w = parameter(`${name}.w`, [rows, columns], xavier(rows, columns));
  const bias = parameter(`${name}.b`, [columns], zeros);
  return op("linear", { x, w, bias }, { out: declare(`${name}.out`, FLOAT32, ["n", columns]) });
}

const pixels = input("pixels", FLOAT32, ["n", 64]);
const label = input("label", INT64, ["n"]);
const hidden = op("tanh", { x: fc("hidden", pixels, 64, 32) }, { y: declare("hidden", FLOAT32, ["n", 32]) });
const logits = fc("logits", hidden, 32, 10);
const loss = op(
  "softmax_with_cross_entropy",
  { logits, label },
  { loss: declare("loss", FLOAT32, ["n"]), softmax: declare("softmax", FLOAT32, ["n", 10]) },
  [{ name: "ignore_index", int: -100 }],
);
const cost = op("mean", { x: loss }, { y: declare("cost", FLOAT32, []) }, [{ name: "keep", bool: false }]);

const message = {
  program: {
    version: 1,
    seed: 7,
    blocks: [block],
    targets: [
      { label: "cost", var: cost },
      { label: "predict", var: logits },
    ],
  },
};
const problem = ProgramFile.verify(message);
if (problem) throw new Error(problem);
writeFileSync(process.argv[2] ?? "digits.program", ProgramFile.encode(ProgramFile.create(message)).finish());
