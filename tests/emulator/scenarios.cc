#include "scenarios.h"

namespace emulator
{

namespace
{

const rondo_operation kOperations[] = {RONDO_OP_ALL_REDUCE, RONDO_OP_ALL_GATHER, RONDO_OP_REDUCE_SCATTER,
                                       RONDO_OP_BROADCAST,  RONDO_OP_REDUCE,     RONDO_OP_ALL_TO_ALL,
                                       RONDO_OP_GATHER,     RONDO_OP_SCATTER,    RONDO_OP_SEND};

Call CallOf(rondo_operation operation, uint64_t count, int root)
{
    Call call;

    call.operation = operation;
    call.count = count;
    call.root = root;
    call.is_exact = false;
    return call;
}

// A message of many slots each way, so that slots run out.
Scenario LongMessages()
{
    Scenario scenario;

    scenario.name = "long messages";
    scenario.shape.slot_bytes = 128;
    scenario.launches = {{CallOf(RONDO_OP_SEND, 2000, 1)}};
    return scenario;
}

// Chains of eight ranks hold as many items as slots allow.
Scenario LongChain()
{
    Scenario scenario;

    scenario.name = "long chain";
    scenario.shape.ranks = 8;
    scenario.shape.lanes = 32;
    scenario.shape.slot_bytes = 128;
    scenario.shape.is_deterministic = true;
    scenario.launches = {{CallOf(RONDO_OP_ALL_REDUCE, 32 * 30, 0)}};
    return scenario;
}

// So many ranks that a slow one's predecessor can be a whole connection ahead when a chunk is complete.
Scenario WideRing()
{
    Scenario scenario;

    scenario.name = "wide ring";
    scenario.shape.ranks = 9;
    scenario.shape.lanes = 32;
    scenario.shape.slot_bytes = 128;
    scenario.launches = {{CallOf(RONDO_OP_ALL_REDUCE, 32 * 9, 0)}};
    return scenario;
}

Scenario ManyWorks(bool has_network)
{
    Scenario scenario;

    scenario.name = has_network ? "many works, network" : "many works";
    scenario.shape.ranks = 3;
    scenario.shape.channels = 2;
    scenario.shape.has_network = has_network;
    scenario.shape.first_step = has_network ? 0 : UINT64_MAX - 3; // steps wrap on the way
    for (int launch = 0; launch < 3; launch++) {
        scenario.launches.emplace_back();
        for (unsigned i = 0; i < 9; i++)
            scenario.launches.back().push_back(CallOf(kOperations[i], 20 + 30 * i, static_cast<int>(i % 3)));
    }
    return scenario;
}

// Each rank reads its peers' memory, or their bounce areas, or of each sort some. Two channels of the planner
// have two works of each rank, of more pieces than slots, and the second launch meets what the first has
// left.
Scenario Directly(rondo_operation operation, unsigned bounced)
{
    Scenario scenario;

    scenario.name = std::string("direct ") + rondo_operation_name(operation) +
                    (bounced == 0         ? ""
                     : bounced == 0b11111 ? ", bounced"
                                          : ", some bounced");
    scenario.shape.ranks = 3;
    scenario.shape.channels = 2;
    scenario.shape.slot_bytes = 128;
    scenario.shape.is_direct = true;
    scenario.shape.is_apart = bounced == 0b10;
    scenario.shape.bounced = bounced;
    scenario.shape.first_step = UINT64_MAX - 3;
    scenario.launches = {{CallOf(operation, 1000, 1)}, {CallOf(operation, 90, 2)}};
    scenario.launches[1][0].redop = RONDO_REDOP_PREMULSUM; // scalars travel too, where there is a reduction
    return scenario;
}

// On four hosts, where every rank has a place of another sort: the root, a leaf, one with two children; and,
// if two ranks share each host, one with three.
Scenario ByTree(unsigned ranks, unsigned hosts, bool has_network)
{
    Scenario scenario;

    scenario.name = "tree of " + std::to_string(ranks) + " ranks on " + std::to_string(hosts) + " hosts" +
                    (has_network ? ", network" : "");
    scenario.shape.ranks = ranks;
    scenario.shape.channels = 2; // both trees
    scenario.shape.lanes = ranks > 4 ? 32 : 64;
    scenario.shape.slot_bytes = 128;
    scenario.shape.hosts = hosts;
    scenario.shape.has_network = has_network;
    scenario.shape.first_step = has_network ? 0 : UINT64_MAX - 3;
    scenario.launches = {{CallOf(RONDO_OP_ALL_REDUCE, 700, 0)},
                         {CallOf(RONDO_OP_ALL_REDUCE, 90, 0), CallOf(RONDO_OP_SEND, 60, 1)}};
    scenario.launches[1][0].redop = RONDO_REDOP_SUMDIV;
    return scenario;
}

// Each rank writes into the slots of all others. Two channels, more pieces than slots, and a second launch
// with scalars of the ranks' own where there is a reduction.
Scenario AtOnce(rondo_operation operation)
{
    Scenario scenario;

    scenario.name = std::string("one-shot ") + rondo_operation_name(operation);
    scenario.shape.ranks = 3;
    scenario.shape.channels = 2;
    scenario.shape.slot_bytes = 128;
    scenario.shape.is_direct = true;
    scenario.launches = {{CallOf(operation, 700, 1)}, {CallOf(operation, 90, 2)}};
    scenario.launches[1][0].redop = RONDO_REDOP_PREMULSUM;
    return scenario;
}

// Slots that several warps share, so that one may be a slot behind another.
Scenario WideAtOnce()
{
    Scenario scenario = AtOnce(RONDO_OP_ALL_REDUCE);

    scenario.name = "one-shot AllReduce, wide slots";
    scenario.shape.lanes = 96;
    scenario.shape.slot_bytes = 640;
    scenario.launches = {{CallOf(RONDO_OP_ALL_REDUCE, 160 * 2 * 12, 1)}};
    return scenario;
}

// Rooted works leave connections at steps of their own, from which the others go on.
Scenario ManyAtOnce()
{
    Scenario scenario = ManyWorks(false);

    scenario.name = "many works, one-shot";
    scenario.shape.is_direct = true;
    return scenario;
}

// Works of nothing, which the planner never makes and the kernels do not forbid, between others.
Scenario WorksOfNothing()
{
    Scenario scenario;

    scenario.name = "works of nothing";
    scenario.shape.ranks = 2;
    scenario.launches = {{CallOf(RONDO_OP_ALL_GATHER, 50, 0), CallOf(RONDO_OP_ALL_REDUCE, 50, 0)}};
    scenario.prepare = [](Communicator &c) {
        for (unsigned rank = 0; rank < c.shape().ranks; rank++)
            for (rondo_work *work : c.Works(rank, 0))
                work->count = 0;
    };
    scenario.run = [](Communicator &c, uint64_t seed) {
        Failure failure = c.RunOnly(seed);
        return failure ? failure : c.CheckEnd();
    };
    return scenario;
}

} // namespace

void AddOverProtocols(const Scenario &scenario, std::vector<Scenario> &scenarios)
{
    scenarios.push_back(scenario);
    if (!scenario.shape.has_network)
        AddOverFlags(scenario, scenarios);
}

void AddOverFlags(const Scenario &scenario, std::vector<Scenario> &scenarios)
{
    for (rondo_protocol protocol : {RONDO_PROTOCOL_LL, RONDO_PROTOCOL_LL128}) {
        Scenario other = scenario;
        other.name += protocol == RONDO_PROTOCOL_LL ? ", LL" : ", LL128";
        other.shape.protocol = protocol;
        other.shape.first_step = 0;
        scenarios.push_back(other);
    }
}

std::vector<Scenario> DataScenarios()
{
    std::vector<Scenario> scenarios;

    for (rondo_operation operation : kOperations)
        for (unsigned bounced : {0u, 0b10u, 0b11111u})
            if (operation != RONDO_OP_SEND)
                scenarios.push_back(Directly(operation, bounced));
    for (rondo_operation operation : kOperations)
        if (operation != RONDO_OP_SEND)
            AddOverFlags(AtOnce(operation), scenarios);
    AddOverFlags(WideAtOnce(), scenarios);
    AddOverFlags(ManyAtOnce(), scenarios);
    for (bool has_network : {false, true})
        for (bool is_chain : {false, true})
            for (rondo_operation operation : kOperations) {
                if (is_chain && !rondo_operation_facts(operation)->reduces)
                    continue;
                Scenario scenario;
                scenario.name = std::string(is_chain ? "chain " : "") + rondo_operation_name(operation) +
                                (has_network ? ", network" : "");
                scenario.shape.ranks = has_network ? 3 : 4;
                scenario.shape.channels = 2;
                scenario.shape.slot_bytes = 128;
                scenario.shape.has_network = has_network;
                scenario.shape.is_deterministic = is_chain;
                scenario.launches = {{CallOf(operation, 700, 1)}};
                AddOverProtocols(scenario, scenarios);
            }
    for (auto [ranks, hosts] : {std::pair(3u, 1u), std::pair(4u, 4u), std::pair(8u, 4u)})
        AddOverProtocols(ByTree(ranks, hosts, false), scenarios);
    scenarios.push_back(ByTree(4, 4, true));
    AddOverProtocols(LongMessages(), scenarios);
    AddOverProtocols(LongChain(), scenarios);
    AddOverProtocols(WideRing(), scenarios);
    AddOverProtocols(ManyWorks(false), scenarios);
    AddOverProtocols(ManyWorks(true), scenarios);
    AddOverProtocols(WorksOfNothing(), scenarios);
    return scenarios;
}

Failure RunScenario(const Scenario &scenario, Communicator &communicator, uint64_t seed)
{
    return scenario.run ? scenario.run(communicator, seed) : communicator.Run(seed);
}

} // namespace emulator
