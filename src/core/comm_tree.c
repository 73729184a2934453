/* comm_tree.c - the ends of tree connections, by channel, protocol and port. */
#include "comm_tree.h"

#include "base/error.h"

#include <stdlib.h>

_Static_assert(RONDO_TREE_PORTS - RONDO_TREE_CHILD == RONDO_TREE_CHILDREN, "a port for each child");

void rondo_comm_find_trees(struct ncclComm *comm, const struct rondo_place *places)
{
    for (int tree = 0; tree < RONDO_TREES; tree++)
        rondo_tree_build(places, comm->ranks, comm->rank, tree, &comm->trees[tree]);
    comm->tree_levels = rondo_tree_levels(places, comm->ranks);
}

/* Both ends, once: works that have been launched read them. */
static bool connect_port(struct ncclComm *comm, const struct rondo_connection *connection, int peer,
                         struct rondo_peer_ends *ends)
{
    struct rondo_end *from, *to;

    if (ends->to)
        return true;
    from = rondo_comm_end(comm, RONDO_RECV, peer, connection);
    to = from ? rondo_comm_end(comm, RONDO_SEND, peer, connection) : NULL;
    if (!to)
        return false;
    *ends = (struct rondo_peer_ends){.from = from, .to = to};
    return true;
}

struct rondo_peer_ends *rondo_comm_tree(void *owner, uint32_t channel, enum rondo_protocol protocol)
{
    struct ncclComm *comm = owner;
    const struct rondo_tree_node *node = &comm->trees[channel % RONDO_TREES];
    size_t sets = (size_t)comm->layout.channels * RONDO_PROTOCOL_NUM;

    if (!comm->tree_ends)
        comm->tree_ends = calloc(sets * RONDO_TREE_PORTS, sizeof(*comm->tree_ends));
    if (!comm->tree_ends) {
        (void)rondo_fail(ncclSystemError,
                         "connect rank %d with its neighbours in the trees of %u channels: out of memory",
                         comm->rank, comm->layout.channels);
        return NULL;
    }
    struct rondo_peer_ends *ends =
        comm->tree_ends + (channel * (size_t)RONDO_PROTOCOL_NUM + protocol) * RONDO_TREE_PORTS;
    for (uint32_t port = 0; port < RONDO_TREE_PORTS; port++) {
        bool is_parent = port == RONDO_TREE_PARENT;
        int peer = is_parent ? node->parent : node->child[port - RONDO_TREE_CHILD];
        struct rondo_connection connection = {
            .kind = RONDO_CONNECTION_TREE,
            .protocol = protocol,
            .channel = channel,
            .own_port = port,
            .far_port = is_parent ? RONDO_TREE_CHILD + node->as_child : RONDO_TREE_PARENT,
        };

        if (peer >= 0 && !connect_port(comm, &connection, peer, &ends[port]))
            return NULL; /* its text is recorded */
    }
    return ends;
}
