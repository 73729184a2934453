/* transport.c - the transports in order of preference, every slot filled: an unset one refuses. */
#include "reach.h"

#include "base/error.h"

#include <pthread.h>

static unsigned refuse_score(const struct rondo_peer *self, const struct rondo_peer *peer)
{
    (void)self;
    (void)peer;
    return 0;
}

static ncclResult_t refuse_attach(const struct rondo_peer *self, const struct rondo_peer *peer,
                                  uint64_t deadline, struct rondo_reach **reach_out)
{
    (void)deadline;
    (void)reach_out;
    return rondo_fail(ncclInternalError, "attach rank %d to rank %d: this transport cannot", self->rank,
                      peer->rank);
}

static ncclResult_t refuse_connect(struct rondo_reach *reach, const struct rondo_layout *layout,
                                   const struct rondo_peer *self, const struct rondo_peer *peer,
                                   enum rondo_direction direction, const struct rondo_connection *connection,
                                   struct rondo_end *end_out)
{
    (void)reach;
    (void)layout;
    (void)direction;
    (void)end_out;
    return rondo_fail(ncclInternalError, "connect rank %d to rank %d on channel %u: this transport cannot",
                      self->rank, peer->rank, connection->channel);
}

static struct rondo_rank_page *refuse_page(struct rondo_reach *reach, const struct rondo_peer *peer)
{
    (void)reach;
    (void)peer;
    return NULL;
}

static ncclResult_t refuse_window(struct rondo_reach *reach, const struct rondo_peer *peer,
                                  struct rondo_window *window_out)
{
    (void)reach;
    (void)window_out;
    return rondo_fail(ncclInternalError, "map the memory of rank %d: this transport cannot", peer->rank);
}

static struct rondo_switchboard *refuse_board(struct rondo_reach *reach)
{
    (void)reach;
    return NULL;
}

static int refuse_descriptor(struct rondo_reach *reach)
{
    (void)reach;
    return -1;
}

static void refuse_release(struct rondo_reach *reach)
{
    (void)reach;
}

static const struct rondo_transport_ops *const sources[] = {&rondo_transport_local, &rondo_transport_shm};

#define TRANSPORTS ((int)(sizeof(sources) / sizeof(sources[0])))

static struct rondo_transport_ops filled[TRANSPORTS];
static const struct rondo_transport_ops *list[TRANSPORTS];

static void fill_list(void)
{
    for (int i = 0; i < TRANSPORTS; i++) {
        const struct rondo_transport_ops *from = sources[i];
        filled[i] = (struct rondo_transport_ops){
            .name = from->name ? from->name : "unnamed",
            .score = from->score ? from->score : refuse_score,
            .attach = from->attach ? from->attach : refuse_attach,
            .connect = from->connect ? from->connect : refuse_connect,
            .page = from->page ? from->page : refuse_page,
            .has_windows = from->has_windows,
            .window = from->window ? from->window : refuse_window,
            .board = from->board ? from->board : refuse_board,
            .death = from->death ? from->death : refuse_descriptor,
            .life = from->life ? from->life : refuse_descriptor,
            .release = from->release ? from->release : refuse_release,
        };
        list[i] = &filled[i];
    }
}

const struct rondo_transport_ops *const *rondo_transport_list(int *count_out)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, fill_list);
    *count_out = TRANSPORTS;
    return list;
}
