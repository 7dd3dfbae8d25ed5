"""Learn to catch a ball by trial and error, with a deep Q-network, which estimates the value of each move.

oarlock train examples/dqn.py
"""

import argparse

import numpy

import oarlock as ol

HEIGHT, WIDTH, MOVES = 7, 6, 3


class Catch:
    """A game: a ball falls and drifts, and a paddle in the last row moves left, stays, or moves right.

    The reward is 1 if the paddle catches the ball, else -1. Many games are played in parallel; a game that ends is restarted. It
    replaces the Atari games of the paper.
    """

    def __init__(self, games: int, seed: int):
        self.random = numpy.random.default_rng(seed)
        self.row, self.column, self.drift, self.paddle = numpy.zeros((4, games), "int64")
        self.begin(numpy.ones(games, bool))

    def begin(self, ended: numpy.ndarray) -> None:
        count = int(ended.sum())
        self.row[ended], self.column[ended] = 0, self.random.integers(0, WIDTH, count)
        self.drift[ended], self.paddle[ended] = self.random.integers(-1, 2, count), self.random.integers(0, WIDTH, count)

    def look(self) -> numpy.ndarray:
        """Return the positions of ball and paddle and the previous position of the ball, float32[games 2*HEIGHT*WIDTH + WIDTH]."""
        games = numpy.arange(len(self.row))
        board = numpy.zeros((2, len(games), HEIGHT, WIDTH), "float32")
        paddle = numpy.zeros((len(games), WIDTH), "float32")
        board[0, games, self.row, self.column] = 1
        board[1, games, numpy.maximum(self.row - 1, 0), numpy.clip(self.column - self.drift, 0, WIDTH - 1)] = 1
        paddle[games, self.paddle] = 1
        return numpy.concatenate([board[0].reshape(len(games), -1), board[1].reshape(len(games), -1), paddle], axis=1)

    def move(self, moves: numpy.ndarray) -> tuple[numpy.ndarray, numpy.ndarray]:
        """Move, and return the rewards, float32[games], and the games that ended, bool[games]."""
        self.paddle = numpy.clip(self.paddle + moves - 1, 0, WIDTH - 1)
        self.row, self.column = self.row + 1, numpy.clip(self.column + self.drift, 0, WIDTH - 1)
        ended = self.row == HEIGHT - 1
        reward = numpy.where(ended, numpy.where(self.paddle == self.column, 1.0, -1.0), 0.0).astype("float32")
        return reward, ended


def worth(seen: ol.Var, name: str) -> ol.Var:
    """Estimate the value of each move: float[n k] -> float[n MOVES]."""
    return ol.layer.fc(ol.layer.fc(seen, 64, act="relu", name=f"{name}.hidden"), MOVES, name=f"{name}.moves")


def main(seed: int = 0, rounds: int = 3000, path: str = "catch.safetensors") -> dict[str, object]:
    """Play and learn until more than 97 of 100 balls are caught; save the player, and return the share of caught balls over time."""
    size = 2 * HEIGHT * WIDTH + WIDTH
    with ol.Program(seed=seed) as program:
        seen, after = ol.layer.data("seen", [size]), ol.layer.data("after", [size])
        move, reward, ended = ol.layer.data("move", [], dtype="int64"), ol.layer.data("reward", []), ol.layer.data("ended", [])
        values = worth(seen, "now")
        later = ol.op.stop_gradient(ol.op.reduce_max(worth(after, "before"), axis=1))  # by the older copy of the network
        expected = reward + 0.95 * (1.0 - ended) * later
        chosen = ol.op.reduce_sum(values * ol.layer.one_hot(move, depth=MOVES), axis=1)
        cost = ol.layer.mean(ol.layer.huber_loss(chosen, expected))
        ol.optimizer.Adam(1e-3).minimize(cost, parameters=[var for var in program.parameters() if var.name.startswith("now.")])

    scope, executor, random = ol.init(program, ol.Scope()), ol.Executor(), numpy.random.default_rng(seed)
    learn = executor.prepare(program, [cost], scope=scope)
    play = executor.prepare(program, [values], scope=scope, training=False)
    games, caught = Catch(16, seed), []
    memory: list[dict[str, numpy.ndarray]] = []
    results: list[float] = []
    now = games.look()
    for number in range(rounds):
        curious = max(0.01, 1.0 - number / 800)
        moves = numpy.where(random.random(16) < curious, random.integers(0, MOVES, 16), play({"seen": now})[0].argmax(1))
        reward_now, over = games.move(moves)
        results += reward_now[over].tolist()
        following = games.look()
        memory.append({"seen": now, "after": following, "move": moves, "reward": reward_now, "ended": over.astype("float32")})
        memory = memory[-500:]
        games.begin(over)
        now = games.look()
        if number % 100 == 0:  # update the older copy
            for var in program.parameters():
                if var.name.startswith("before."):
                    scope[var.name] = scope[var.name.replace("before.", "now.")].clone()
        if number >= 20:
            remembered = [memory[place] for place in random.integers(0, len(memory), 4)]
            learn({name: numpy.concatenate([item[name] for item in remembered]) for name in remembered[0]})
        if number % 100 == 99:
            caught.append(float(numpy.mean(numpy.array(results[-250:]) > 0)))
            print(f"round {number + 1}: {caught[-1]:.0%} caught, {curious:.0%} of the moves at random")
            if caught[-1] > 0.97:
                break

    ol.save_model(values, scope, path)
    print(f"saved {path}")
    return {"caught": caught}


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--seed", type=int, default=0, help="seed of the games, the initial values and the random moves")
    arguments.add_argument("--rounds", type=int, default=3000, help="maximum number of moves in each of 16 games")
    arguments.add_argument("--path", default="catch.safetensors", help="output file")
    main(**vars(arguments.parse_args()))
