/*
 * mpi_processes.c - one process per device under MPI, which starts the processes and carries the id; the data
 * is ours.
 *
 * usage: mpirun -np RANKS mpi_processes [COUNT]
 *
 * A reduce-scatter: every rank contributes the number of the block at each place; rank r must receive RANKS *
 * r. COUNT is of a block.
 */
#include "check_calls.h"

#include <mpi.h>

/* This process's number among those on the same machine: which device to use. */
static int local_rank(int rank)
{
    MPI_Comm machine;
    int local = 0;

    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &machine);
    MPI_Comm_rank(machine, &local);
    MPI_Comm_free(&machine);
    return local;
}

/* Number of wrong elements. */
static int reduce_scatter(ncclComm_t comm, int rank, int ranks, int count)
{
    size_t bytes = (size_t)count * sizeof(double);
    double *host = malloc(bytes * (size_t)ranks), *blocks, *mine;
    cudaStream_t stream;
    int wrong = 0;

    if (!host) {
        fprintf(stderr, "no memory for %d doubles\n", count * ranks);
        exit(1);
    }
    for (int block = 0; block < ranks; block++)
        for (int i = 0; i < count; i++)
            host[(size_t)block * (size_t)count + (size_t)i] = block;
    check_cuda(cudaStreamCreate(&stream), "cudaStreamCreate");
    blocks = device_copy(host, bytes * (size_t)ranks);
    mine = device_copy(host, bytes);
    check_nccl(ncclReduceScatter(blocks, mine, (size_t)count, ncclDouble, ncclSum, comm, stream),
               "ncclReduceScatter");
    check_cuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    check_cuda(cudaMemcpy(host, mine, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy to the host");
    for (int i = 0; i < count; i++)
        wrong += host[i] != (double)ranks * rank;
    check_cuda(cudaFree(mine), "cudaFree");
    check_cuda(cudaFree(blocks), "cudaFree");
    check_cuda(cudaStreamDestroy(stream), "cudaStreamDestroy");
    free(host);
    return wrong;
}

int main(int argc, char **argv)
{
    int rank, ranks, device, wrong, all_wrong = 0;
    ncclUniqueId id;
    ncclComm_t comm;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int count = positive_argument(argc, argv, 1, 1 << 16);

    device = local_rank(rank);
    check_cuda(cudaSetDevice(device), "cudaSetDevice");
    if (rank == 0)
        check_nccl(ncclGetUniqueId(&id), "ncclGetUniqueId");
    MPI_Bcast(&id, sizeof(id), MPI_BYTE, 0, MPI_COMM_WORLD);
    check_nccl(ncclCommInitRank(&comm, ranks, id, rank), "ncclCommInitRank");

    wrong = reduce_scatter(comm, rank, ranks, count);
    printf("rank %d of %d, device %d: reduce-scatter of %d doubles a rank, %d wrong\n", rank, ranks, device,
           count, wrong);
    check_nccl(ncclCommDestroy(comm), "ncclCommDestroy");

    MPI_Allreduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return all_wrong != 0;
}
