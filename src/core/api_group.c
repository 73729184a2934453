/* api_group.c - the entry points of groups. */
#include "api.h"
#include "group.h"

ncclResult_t pncclGroupStart(void)
{
    rondo_group_open();
    return ncclSuccess;
}
RONDO_TWIN(ncclGroupStart);

ncclResult_t pncclGroupEnd(void)
{
    return rondo_group_end();
}
RONDO_TWIN(ncclGroupEnd);
